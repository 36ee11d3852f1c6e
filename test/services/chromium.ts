import { existsSync } from 'node:fs';
import { aptInstall } from './apt-get.ts';
import { findOnPath, runCommand } from './run-command.ts';

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
const VERSION_MS = 20_000;

/** Finds or installs it. `TROUPE_TEST_CHROMIUM=none` does neither. */
export async function installChromium(env: NodeJS.ProcessEnv = process.env): Promise<Chromium> {
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

/** A browser that cannot even print its version would fail every test with unclear messages. */
async function open(path: string, origin: string): Promise<Chromium> {
  const { ok, stdout, reason } = await runCommand(path, ['--version'], { timeoutMs: VERSION_MS });
  if (!ok) return { missing: `${path}: ${reason}` };
  const version = /\d+(\.\d+)+/.exec(stdout)?.[0] ?? 'of unknown version';
  return { path, how: `Chromium ${version} (${origin})` };
}

export function describeChromium(chromium: Chromium): string {
  return `browser: ${'missing' in chromium ? `none (${chromium.missing})` : chromium.how}`;
}
