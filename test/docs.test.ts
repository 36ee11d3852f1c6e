import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import type { Command } from 'commander';
import { describe, expect, test } from 'vitest';
import { createProgram } from '../src/cli/program.ts';
import { CompactionStrategy } from '../src/events/index.ts';
import { routeTable } from '../src/http/routes/index.ts';
import { DOORS } from '../src/library/integrations/door.ts';
import { openDoors } from '../src/library/runtime/doors.ts';
import { ProviderSettings } from '../src/providers/settings.ts';
import { BUILTIN_TOOLS } from '../src/tools/builtin/index.ts';

const ROOT = path.dirname(import.meta.dirname);
const read = (file: string) => readFileSync(path.join(ROOT, file), 'utf8');
const inFolder = (folder: string) =>
  readdirSync(path.join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.md') && !file.includes('node_modules'))
    .map((file) => path.posix.join(folder, file));

/** Documents of the present state. CHANGELOG.md also names what is gone. */
const DOCS = [
  'README.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  ...['docs', 'examples', 'packages'].flatMap(inFolder),
];
const codeIn = (text: string) => [...text.matchAll(/`([^`\n]+)`/g)].map(([, code]) => code ?? '');

/** All folders below `src`, at any depth. */
const FOLDERS = readdirSync(path.join(ROOT, 'src'), { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map((entry) => path.relative(ROOT, path.join(entry.parentPath, entry.name)).replaceAll(path.sep, '/'));

describe.each(DOCS)('%s', (file) => {
  const text = read(file);

  test('names only files that exist', () => {
    const bases = ['.', 'src', path.dirname(file), ...FOLDERS.filter((folder) => text.includes(folder))];
    const named = codeIn(text).filter((code) =>
      /^(?:(?:src|test|web|docs|examples|packages|scripts|turn-weight|sim|rig|score|bench|fuzz|\.ci)\/[\w./-]*|[\w/-]+\.(?:tsx?|mjs|py))$/.test(
        code,
      ),
    );
    const missing = named
      .filter((name) => name !== 'agents.ts' && !text.includes(`\n// ${name}\n`))
      .filter((name) => !bases.some((base) => existsSync(path.join(ROOT, base, name))));
    expect(missing).toEqual([]);
  });

  test('links only to files that exist, and to headings that they have', () => {
    const broken = [...text.matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)/g)].filter(
      ([, to = '', anchor]) => {
        const target = path.posix.join(to === '' ? file : path.posix.join(path.dirname(file), to));
        if (!existsSync(path.join(ROOT, target))) return true;
        return anchor !== undefined && !headingsOf(read(target)).includes(anchor);
      },
    );
    expect(broken.map(([link]) => link)).toEqual([]);
  });

  test('names only commands that exist', () => {
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
    const commands = [...text.matchAll(/\bnpm run (?:-s )?([\w:-]+)/g)].map(([, name]) => name ?? '');
    expect(commands.filter((name) => !(name in scripts))).toEqual([]);
    const program = createProgram();
    const used = [...text.matchAll(/(?:npx troupe|run -s troupe --|`troupe) ((?:[a-z]+ ?)+)/g)];
    expect(used.map(([, words]) => words ?? '').filter((words) => !isCommand(program, words))).toEqual([]);
  });
});

test('CHANGELOG.md says each change once, and names pages that exist', () => {
  const text = read('CHANGELOG.md');
  const changes = text.split('\n').filter((line) => line.startsWith('- '));
  const heads = changes.map((line) => line.slice(0, 60));
  expect(heads.filter((head, at) => heads.indexOf(head) !== at)).toEqual([]);
  const pages = [...text.matchAll(/\bdocs\/[\w/-]+\.md\b/g)].map(([page]) => page);
  expect(pages.filter((page) => !existsSync(path.join(ROOT, page)))).toEqual([]);
});

/** The anchors that GitHub gives to headings. */
function headingsOf(text: string): string[] {
  return [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-'),
  );
}

function isCommand({ commands }: Command, words: string): boolean {
  return commands.some((command) => command.name() === words.split(' ')[0]);
}

test('README is read in a few minutes', () => {
  expect(read('README.md').split(/\s+/).length).toBeLessThanOrEqual(900);
});

test('the documents name every route, provider, built-in tool and compaction strategy', async () => {
  const all = DOCS.map(read).join('\n');
  const paths = routeTable(await openDoors(DOORS)).routes.map((route) =>
    route.path.replace(/\{(\w+)\}/g, ':$1'),
  );
  // The routes below one id share a row.
  const isNamed = (route: string) =>
    all.includes(route) || all.includes(`…/${route.split('/').slice(-2).join('/')}`);
  expect(paths.filter((route) => !isNamed(route))).toEqual([]);
  const agentsFile = codeIn(read('docs/reference/agents-file.md'));
  const providers = ProviderSettings.options.map(({ shape }) => shape.provider.value);
  expect([...providers, ...BUILTIN_TOOLS].filter((name) => !agentsFile.includes(name))).toEqual([]);
  const inDetail = codeIn(read('docs/reference/providers.md'));
  expect(providers.filter((name) => !inDetail.includes(name))).toEqual([]);
  const metrics = codeIn(read('docs/reference/metrics.md'));
  expect(CompactionStrategy.options.filter((name) => !metrics.includes(name))).toEqual([]);
});

test('every dependency has its reason, and no other is named', () => {
  const [table = '', development = ''] = read('docs/contributing/dependencies.md').split('For development:');
  const core = JSON.parse(read('package.json')) as Manifest;
  const packages = readdirSync('packages').map(
    (name) => JSON.parse(read(`packages/${name}/package.json`)) as Manifest,
  );
  const names = (part: Record<string, string> = {}) => Object.keys(part);
  const isOwn = (name: string) => name.startsWith('@troupe/');
  const used = new Set([
    ...names(core.dependencies),
    ...names(core.peerDependencies),
    ...packages.flatMap(({ dependencies }) => names(dependencies).filter((name) => !isOwn(name))),
  ]);
  const rows = table.split('\n').filter((line) => line.startsWith('| `'));
  const named = rows.flatMap((row) => codeIn(row.split('|')[1] ?? '')).filter((name) => !isOwn(name));
  expect(named.toSorted()).toEqual([...used].toSorted());
  const forTests = codeIn(development).filter((name) => !isOwn(name));
  const tools = names(core.devDependencies).filter((name) => !used.has(name));
  expect(tools.filter((name) => !forTests.includes(name))).toEqual([]);
  expect(
    forTests.filter(
      (name) =>
        !tools.includes(name) && !packages.some(({ devDependencies = {} }) => name in devDependencies),
    ),
  ).toEqual([]);
});

interface Manifest {
  dependencies?: Record<string, string>;
  peerDependencies?: Record<string, string>;
  devDependencies?: Record<string, string>;
}

test('CONTRIBUTING says what each folder below src is for, and names no other', () => {
  const contributing = read('CONTRIBUTING.md');
  const named: string[] = [];
  for (const [, parent, row = ''] of contributing.matchAll(/^\| `(src(?:\/\w+)+)\/` \|(.+)$/gm))
    named.push(
      ...codeIn(row).flatMap((name) => (/^[\w-]+\/$/.test(name) ? `${parent}/${name.slice(0, -1)}` : [])),
    );
  const isRoom = (folder: string) => folder.split('/').length === 2;
  // The list of features has the words of each, as `test/features.test.ts` demands.
  const isFeature = (folder: string) => path.dirname(folder) === 'src/actors/features';
  const others = FOLDERS.filter((folder) => !isRoom(folder) && !isFeature(folder));
  expect(named.toSorted()).toEqual(others.toSorted());
  const rooms = FOLDERS.filter(isRoom);
  expect(rooms.filter((folder) => !contributing.includes(`\`${folder.slice('src/'.length)}/\``))).toEqual([]);
});
