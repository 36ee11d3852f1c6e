import { execFile } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { callCli } from './call.ts';
import { workplace } from './harness.ts';

const ROOT = path.dirname(path.dirname(import.meta.dirname));
const run = promisify(execFile);
const COMBINATIONS = ['agent', 'team'].flatMap((template) =>
  ['ts', 'json'].map((lang) => ({ template, lang })),
);

describe.each(COMBINATIONS)('init --template $template --lang $lang', ({ template, lang }) => {
  test('writes a project whose test and start script run without a key', async () => {
    using project = emptyFolder();
    const { code, out } = await callCli(
      ['init', project.dir, '--template', template, '--lang', lang, '--json'],
      tmpdir(),
      env(),
    );
    expect(code).toBe(0);
    const { files, next } = JSON.parse(out) as { files: string[]; next: string[] };
    expect(files).toEqual(expect.arrayContaining([`agents.${lang}`, '.gitignore', '.env.example']));
    expect(next).toEqual(expect.arrayContaining(['npm install', 'npm test', 'npm start', 'npm run dev']));
    for (const name of files) expect(existsSync(path.join(project.dir, name))).toBe(true);
    linkTroupe(project.dir);
    const { stdout } = await npm(project.dir, ['test']);
    expect(stdout).toContain('pass 1');
    const started = await npm(project.dir, ['start', '--', 'My invoice?']);
    expect(started.stdout).toMatch(template === 'team' ? /^billing: The second line/m : /^helper: This is/m);
    using place = workplace({ agents: null });
    const checked = await place.call(['doctor', path.join(project.dir, `agents.${lang}`), '--json']);
    expect(checked.json).toMatchObject({ ok: true });
  });
});

test('init overwrites nothing without --force, and names what is in the way', async () => {
  using place = workplace({ agents: null });
  place.write('start.ts', 'mine');
  const refused = await place.call(['init', '--json']);
  expect(refused.code).toBe(1);
  expect(refused.json).toMatchObject({ error: { code: 'config_invalid', data: { files: ['start.ts'] } } });
  expect(existsSync(path.join(place.dir, 'agents.ts'))).toBe(false);
  expect(readFileSync(path.join(place.dir, 'start.ts'), 'utf8')).toBe('mine');
  expect((await place.call(['init', '--force', '--json'])).code).toBe(0);
  expect(readFileSync(path.join(place.dir, 'start.ts'), 'utf8')).toContain('createTroupe');
});

test('init adds to a package.json, and asks for --force before it replaces the module type', async () => {
  using place = workplace({ agents: null });
  const test = 'echo "Error: no test specified" && exit 1';
  place.write('package.json', {
    name: 'mine',
    scripts: { start: 'mine', test },
    dependencies: { troupe: 'file:t' },
  });
  expect((await place.call(['init', '--json'])).code).toBe(0);
  expect(manifestOf(place.dir)).toMatchObject({
    name: 'mine',
    type: 'module',
    scripts: { start: 'mine', test: 'node --test', dev: 'troupe dev agents.ts' },
    dependencies: { troupe: 'file:t' },
  });
  using fresh = workplace({ agents: null });
  fresh.write('package.json', { main: 'index.js', scripts: { test }, type: 'commonjs' });
  expect((await fresh.call(['init', '--json'])).code).toBe(0);
  expect(manifestOf(fresh.dir)).toMatchObject({ type: 'module' });
  for (const used of [
    { type: 'commonjs' },
    { scripts: { test: 'mocha' } },
    { main: 'script.cjs', scripts: { test } },
  ]) {
    using other = workplace({ agents: null });
    other.write('package.json', used);
    other.write('script.cjs', 'require("node:fs");');
    const refused = await other.call(['init']);
    expect(refused.err).toContain('package.json (its "type" must become "module")');
    expect((await other.call(['init', '--force', '--json'])).code).toBe(0);
    expect(manifestOf(other.dir)).toMatchObject({ type: 'module' });
  }
});

test('init names a package.json that it cannot read, and an unknown template', async () => {
  using place = workplace({ agents: null });
  place.write('package.json', '{ "name": ');
  expect((await place.call(['init'])).err).toMatch(/cannot add to .*package\.json: .*JSON/);
  const wrong = await place.call(['init', '--template', 'crew']);
  expect(wrong.code).toBe(2);
  expect(wrong.err).toContain('agent, team');
});

function emptyFolder(): { dir: string } & Disposable {
  const dir = mkdtempSync(path.join(tmpdir(), 'troupe-init-'));
  return { dir, [Symbol.dispose]: () => rmSync(dir, { recursive: true, force: true }) };
}

/** No key of this machine, so that agents answer from the script. */
function env(): NodeJS.ProcessEnv {
  const { ANTHROPIC_API_KEY: _, ...rest } = process.env;
  return {
    ...rest,
    NO_COLOR: '1',
    PATH: `${path.join(ROOT, 'node_modules/.bin')}${path.delimiter}${rest['PATH']}`,
  };
}

/** What `npm install` does, with this checkout. Node runs TypeScript outside of `node_modules` only: hence links. */
function linkTroupe(dir: string): void {
  const home = path.join(dir, 'node_modules/troupe');
  mkdirSync(home, { recursive: true });
  symlinkSync(path.join(ROOT, 'src'), path.join(home, 'src'));
  writeFileSync(
    path.join(home, 'package.json'),
    JSON.stringify({ name: 'troupe', type: 'module', exports: './src/index.ts' }),
  );
}

function npm(cwd: string, args: string[]): Promise<{ stdout: string }> {
  return run('npm', args, { cwd, env: env() });
}

function manifestOf(dir: string): unknown {
  return JSON.parse(readFileSync(path.join(dir, 'package.json'), 'utf8'));
}
