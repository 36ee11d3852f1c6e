import { existsSync } from 'node:fs';
import { aptInstall } from './apt-get.ts';
import { findOnPath, runCommand } from './run-command.ts';
import { DOES_NOT_RUN, unusableParts } from './unusable.ts';

/** The browser of page tests, screenshots and page benchmarks. */
export type Chromium = { path: string; how: string } | { missing: string };

/** Passes the path to the tests. */
export const CHROMIUM_ENV = 'TROUPE_CHROMIUM';
/** The user's browser, which takes precedence. */
const NAMED_ENV = 'CHROMIUM_PATH';
const SWITCH = 'TROUPE_TEST_CHROMIUM';
/** Chromium without windows, which no test needs: a page takes a quarter of the CPU. */
const SHELLS = ['chromium-headless-shell', 'chrome-headless-shell'];
const BROWSERS = ['chromium', 'chromium-browser', 'google-chrome'];
const FOLDERS = ['/usr/bin', '/usr/local/bin'];
/** Without a font a page shows boxes. */
const FONTS = 'fonts-dejavu-core';
const TRIAL_MS = 60_000;
/** As root, and without requests of its own. */
const TRIAL = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run'];
const TRIAL_PAGE = 'data:text/html,<script>document.write(6*7)</script>';

/** Finds or installs it. `TROUPE_TEST_CHROMIUM=none` does neither. */
export async function installChromium(env: NodeJS.ProcessEnv = process.env): Promise<Chromium> {
  const unusable = unusableParts(env).Chromium;
  if (unusable !== undefined) return { missing: unusable };
  for (const name of [NAMED_ENV, CHROMIUM_ENV]) {
    const path = env[name];
    if (path) return existsSync(path) ? open(path, name) : { missing: `${name}: there is no ${path}` };
  }
  if (env[SWITCH] === 'none') return { missing: `${SWITCH}: none` };
  const found = find(SHELLS);
  if (found) return open(found, 'PATH');
  const browser = find(BROWSERS);
  const failure = await aptInstall(['chromium-headless-shell', FONTS], { lists: browser ? 'old' : 'new' });
  const shell = find(SHELLS);
  if (shell) return open(shell, 'apt-get');
  if (browser) return open(browser, 'PATH');
  // An older Debian has the whole Chromium only.
  const other = await aptInstall(['chromium', FONTS]);
  const installed = find(BROWSERS);
  return installed
    ? open(installed, 'apt-get')
    : { missing: other ?? failure ?? 'the package has no chromium' };
}

function find(names: readonly string[]): string | null {
  return names.map((name) => findOnPath(name, FOLDERS)).find((path) => path !== null) ?? null;
}

/** A browser that cannot show a page would fail every test with unclear messages. */
async function open(path: string, origin: string): Promise<Chromium> {
  const { ok, stdout, reason } = await runCommand(path, ['--version'], { timeoutMs: TRIAL_MS });
  if (!ok) return { missing: `${path}: ${reason}` };
  const page = await runCommand(path, [...TRIAL, '--dump-dom', TRIAL_PAGE], { timeoutMs: TRIAL_MS });
  if (!page.ok || !page.stdout.includes('42'))
    return { missing: `${path} ${DOES_NOT_RUN}: it showed no page (${page.reason})` };
  const version = /\d+(\.\d+)+/.exec(stdout)?.[0] ?? 'of unknown version';
  return { path, how: `Chromium ${version} (${origin})` };
}

export function describeChromium(chromium: Chromium): string {
  return `browser: ${'missing' in chromium ? `none (${chromium.missing})` : chromium.how}`;
}
