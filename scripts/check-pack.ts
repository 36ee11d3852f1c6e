import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { checkNostr } from './check-nostr.ts';
import { checkPage } from './check-page.ts';

/**
 * Packs Troupe as `npm publish` would, installs the tarball into an empty folder, and uses it there: the command, the
 * entry points, the page, and `@troupe/nostr` beside it. Finds what tests in the checkout cannot: a file missing from
 * `files`, or wrong `exports`.
 */
const ROOT = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const ENTRY_POINTS = ['troupe', 'troupe/integrations', 'troupe/testing'];
/** The Node of this checkout comes first in the path. */
const ENV = {
  ...process.env,
  PATH: `${path.join(ROOT, 'node_modules/.bin')}${path.delimiter}${process.env['PATH']}`,
};

const scratch = mkdtempSync(path.join(tmpdir(), 'troupe-pack-'));
try {
  await checkPack(scratch);
} catch (error) {
  console.error(`check-pack: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
} finally {
  rmSync(scratch, { recursive: true, force: true });
}

async function checkPack(folder: string): Promise<void> {
  const { version } = JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8')) as {
    version: string;
  };

  run(ROOT, 'npm', ['pack', '--pack-destination', folder]);
  const tarball = readdirSync(folder).find((name) => name.endsWith('.tgz'));
  if (!tarball) throw new Error('npm pack left no tarball');

  const app = path.join(folder, 'app');
  mkdirSync(app);
  writeFileSync(
    path.join(app, 'package.json'),
    JSON.stringify({ name: 'app', private: true, type: 'module' }),
  );
  run(app, 'npm', ['install', '--ignore-scripts', '--prefer-offline', path.join(folder, tarball)]);

  const printed = run(app, 'npx', ['--no-install', 'troupe', '--version']).trim();
  if (printed !== version)
    throw new Error(`troupe --version printed ${JSON.stringify(printed)}, not ${version}`);

  for (const entry of ENTRY_POINTS) {
    const source = `const entry = await import('${entry}'); console.log(Object.keys(entry).length);`;
    const exported = Number(run(app, process.execPath, ['--input-type=module', '--eval', source]));
    if (!(exported > 0)) throw new Error(`'${entry}' exports nothing`);
    console.log(`check-pack: '${entry}' has ${exported} exports`);
  }
  console.log(`check-pack: ${checkNostr(ROOT, app, folder, run)}`);
  console.log(`check-pack: ${await checkPage(app, ENV)}`);
  console.log(`check-pack: troupe ${version} works from its tarball`);
}

/** Returns stdout; throws with all output on failure. */
function run(cwd: string, command: string, args: string[]): string {
  const { status, stdout, stderr, error } = spawnSync(command, args, { cwd, env: ENV, encoding: 'utf8' });
  if (error) throw error;
  if (status === 0) return stdout;
  throw new Error(`${command} ${args.join(' ')} ended with code ${status}\n${stdout}\n${stderr}`);
}
