import { execFile } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { BUILTIN_TOOLS } from '../src/tools/builtin/index.ts';

const ROOT = path.dirname(import.meta.dirname);
const KINDS = 'src/events/kinds.ts';

/** Copies the sources and applies the changes. */
function copyWith(changes: Record<string, (text: string) => string>): string {
  const dir = mkdtempSync(path.join(tmpdir(), 'troupe-recipe-'));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  for (const part of ['src', 'package.json', 'tsconfig.json', '.oxlintrc.json'])
    cpSync(path.join(ROOT, part), path.join(dir, part), { recursive: true });
  symlinkSync(path.join(ROOT, 'node_modules'), path.join(dir, 'node_modules'));
  for (const [file, change] of Object.entries(changes)) {
    const before = readFileSync(path.join(dir, file), 'utf8');
    expect(change(before)).not.toBe(before);
    writeFileSync(path.join(dir, file), change(before));
  }
  return dir;
}

/** The files that a tool complains about; empty if it has no complaint. Its output must be plain: CI turns colours on. */
async function complaints(dir: string, tool: string, args: string[]): Promise<string[]> {
  const output = await new Promise<string>((resolve) => {
    const bin = path.join(ROOT, 'node_modules/.bin', tool);
    execFile(bin, args, { cwd: dir, maxBuffer: 64 * 1_024 * 1_024 }, (_, stdout, stderr) =>
      resolve(stdout + stderr),
    );
  });
  return [...new Set(output.match(/src\/[\w/.-]+\.ts(?=[(:])/g))].toSorted();
}

/** With one checker: each one more repeats work, and tests share the cores. */
const compile = (dir: string) =>
  complaints(dir, 'tsc', [
    '--checkers',
    '1',
    '--noEmit',
    '--declaration',
    'false',
    '--pretty',
    'false',
    '-p',
    '.',
  ]);
const lint = (dir: string, files: readonly string[]) =>
  complaints(dir, 'oxlint', ['--type-aware', '--format', 'unix', ...files]);

const withKind = (text: string, entry: string) => text.replace('  message: {', `  ${entry},\n  message: {`);

/** The first step of each recipe of CONTRIBUTING.md, and the files that must not compile until they know of it. */
const FIRST_STEPS: Record<string, { change: (text: string) => string; asks: string[] }> = {
  [KINDS]: {
    change: (text) => withKind(text, "'fixture.kind': { body: 'MessageBody', aspects: ['members'] }"),
    asks: [KINDS, 'src/machines/membership.ts', 'src/library/projection/summarise-event.ts'],
  },
  'src/providers/settings.ts': {
    change: (text) =>
      text
        .replace(
          'PROVIDER_SETTINGS = {',
          "$&\n  fixture: z.object({ provider: z.literal('fixture'), ...Model }),",
        )
        .replace('  P.scripted,', '$&\n  P.fixture,'),
    asks: ['src/library/runtime/registry.ts', 'src/library/runtime/providers.ts'],
  },
  'src/machines/compaction.ts': {
    change: (text) => text.replace("['adopt',", "['fixture', 'adopt',"),
    asks: ['src/actors/features/compaction/feature.ts'],
  },
  'src/machines/agent-lifecycle.ts': {
    change: (text) => text.replace("  'assemble',", "  'fixture',\n  'assemble',"),
    asks: ['src/actors/turn/turn.ts'],
  },
  'src/library/troupe.ts': {
    change: (text) => text.replace('export interface Troupe {', '$&\n  fixture(): void;'),
    asks: ['src/http/limit-troupe.ts'],
  },
  'src/http/routes/status.ts': {
    change: (text) => text.replace("    scopes: ['read'],\n", ''),
    asks: ['src/http/routes/status.ts'],
  },
  'src/store/driver.ts': {
    change: (text) => text.replace('export interface StoreDriver {', '$&\n  fixture(): void;'),
    asks: ['src/store/documents/document-driver.ts', 'src/store/sqlite/sqlite-driver.ts'],
  },
};

test('an incomplete recipe compiles in none of the places that need it', async () => {
  const steps = Object.entries(FIRST_STEPS);
  const refused = await compile(
    copyWith(Object.fromEntries(steps.map(([file, { change }]) => [file, change]))),
  );
  expect(refused).toEqual(expect.arrayContaining(steps.flatMap(([, { asks }]) => asks)));
});

/** The texts of a test file and of the helpers that it imports from its own folder. */
function withHelpers(file: string): string {
  const text = readFileSync(path.join(ROOT, file), 'utf8');
  const helpers = [...text.matchAll(/from '\.\/([\w-]+\.ts)'/g)].map(([, name]) =>
    readFileSync(path.join(ROOT, path.dirname(file), name ?? ''), 'utf8'),
  );
  return [text, ...helpers].join('\n');
}

test.each(['store', 'providers'])('every adapter of src/%s runs its conformance suite', (port) => {
  const suite = withHelpers(`test/${port}/conformance.test.ts`);
  const adapters = readdirSync(path.join(ROOT, 'src', port), { withFileTypes: true })
    // `cli` is what the providers with a program share.
    .filter((entry) => entry.isDirectory() && entry.name !== 'cli')
    .map(({ name }) => `src/${port}/${name}/`);
  expect(adapters.length).toBeGreaterThan(2);
  expect(adapters.filter((adapter) => !suite.includes(adapter))).toEqual([]);
});

test('every built-in tool is in the list of built-in tools', () => {
  const folder = path.join(ROOT, 'src/tools/builtin');
  const defined = readdirSync(folder).flatMap((file) =>
    [...readFileSync(path.join(folder, file), 'utf8').matchAll(/defineTool\(\{\s*name: '(\w+)'/g)].map(
      ([, name]) => name ?? '',
    ),
  );
  expect(defined.toSorted()).toEqual([...BUILTIN_TOOLS].toSorted());
});

/** A function returns early for these kinds, before its switch over the others. */
const TAKEN_FIRST = ["'announced'", "'turnEnd'", "'taskOpening'", "'taskEnd'", "'upkeep'"];

test('a kind that has an aspect is refused by every switch over that aspect', async () => {
  const all = /export type Aspect =([^;]+);/.exec(readFileSync(path.join(ROOT, KINDS), 'utf8'))?.[1] ?? '';
  const aspects = all.match(/'\w+'/g) ?? [];
  const later = aspects.filter((aspect) => !TAKEN_FIRST.includes(aspect));
  const entry = (kind: string, about: readonly string[]) =>
    `'fixture.${kind}': { body: 'MessageBody', aspects: [${about.join(', ')}], imported: 'as is', level: 'talk' }`;
  const dir = copyWith({
    [KINDS]: (text) => withKind(withKind(text, entry('kind', aspects)), entry('later', later)),
  });
  const switches = switchesIn(dir);
  expect(switches.length).toBeGreaterThan(15);
  const named = new Set([...(await compile(dir)), ...(await lint(dir, switches))]);
  expect(switches.filter((file) => !named.has(file))).toEqual([]);
});

/** The files with a switch over the remaining kinds of an aspect. */
function switchesIn(dir: string): string[] {
  const files = readdirSync(path.join(dir, 'src'), { recursive: true, encoding: 'utf8' });
  return files
    .filter((file) => file.endsWith('.ts'))
    .map((file) => path.posix.join('src', file))
    .filter((file) => {
      const text = readFileSync(path.join(dir, file), 'utf8');
      return text.includes('isAbout(') && /switch \(\w+\.kind\)/.test(text);
    });
}
