import { existsSync, readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { checkLayers, checkPackages } from './layers.ts';
import type { SourceFile } from './layers.ts';

const ROOT = path.dirname(import.meta.dirname);
const WRITTEN_BY_HAND = /\.(?:ts|tsx|js|mjs|css)$/;

describe('the tree', () => {
  test('has no import against the arrows, no cycle, and no impurity in machines and context', () => {
    const files = filesOf('src').filter((file) => file.path.endsWith('.ts'));
    expect(checkLayers(files.map(({ path, text }) => ({ path: path.slice('src/'.length), text })))).toEqual(
      [],
    );
  });

  test('has no package that imports more of the core than its public API', () => {
    const files = filesOf('packages').filter(({ path: file }) => /^packages\/[^/]+\/src\//.test(file));
    expect(files.length).toBeGreaterThan(0);
    expect(checkPackages(files)).toEqual([]);
  });
});

/**
 * Places beside `runtimeId` where a text becomes an event id: ids named by clients, and ids that are never stored.
 */
const OTHER_IDS = [
  'packages/nostr/src/intake.ts',
  'src/cli/commands/act.ts',
  'src/context/compaction/plan.ts',
  'src/context/compaction/prune.ts',
  'src/events/ids.ts',
  'src/library/facade/parse-input.ts',
  'src/library/import/draft-writer.ts',
];

test('event ids are created by runtimeId alone, so that no client can take one', () => {
  const minting = [...filesOf('src'), ...filesOf('packages/nostr/src')].filter(({ text }) =>
    /\bas (?:\(\) => )?EventId\b/.test(text),
  );
  expect(minting.map((file) => file.path).toSorted()).toEqual(OTHER_IDS);
});

/** Words that once stood beside another for the same idea, by the one that stays. CONTRIBUTING has the list. */
const OTHER_WORDS: Readonly<Record<string, RegExp>> = {
  'fold, cache, repository or accounts': /\b\w+(?:Book|Shelf|Ledger)s?\b/g,
  cancelled: /\bcalled off\b|'withdrawn'|\bHalt\b|\bhalt(?:ed|Of)?\b/g,
};

test('one idea has one word', () => {
  const found = [...filesOf('src'), ...filesOf('packages'), ...filesOf('web')]
    .filter(({ path: file }) => /\.tsx?$/.test(file) && !file.includes('/test/'))
    .flatMap(({ path: file, text }) =>
      Object.entries(OTHER_WORDS).flatMap(([word, others]) =>
        (text.match(others) ?? []).map((other) => `${file}: ${other}; say ${word}`),
      ),
    );
  expect(found).toEqual([]);
});

describe('the layer check', () => {
  const check = (files: Record<string, string>) =>
    checkLayers(Object.entries(files).map(([path, text]) => ({ path, text })));

  test.each<[string, Record<string, string>, string[]]>([
    [
      'an import against the arrows',
      { 'context/prompt.ts': `import { open } from '../store/store.ts';` },
      [
        'src/context/prompt.ts imports src/store/store.ts: context may import only events, base/errors.ts, base/o200k-ranks.ts, machines/compaction-fold.ts, machines/directions.ts',
      ],
    ],
    [
      'the same as a type, over several lines',
      { 'events/a.ts': `import type {\n  Clock,\n} from '../base/clock.ts';` },
      ['src/events/a.ts imports src/base/clock.ts: events may import only base/errors.ts'],
    ],
    [
      'a re-export',
      { 'machines/a.ts': `export * from '../context/b.ts';` },
      ['src/machines/a.ts imports src/context/b.ts: machines may import only events, base/errors.ts'],
    ],
    [
      'an import for its side effects',
      { 'library/projection/a.ts': `import '../../base/clock.ts';` },
      [
        'src/library/projection/a.ts imports src/base/clock.ts: library/projection may import only events/aspects.ts, events/erased-words.ts, events/kinds.ts, events/message-text.ts, machines/availability-fold.ts, machines/compaction-fold.ts, machines/directions.ts, machines/membership.ts, machines/task-events.ts, and types of events',
      ],
    ],
    [
      'a lazy import of an adapter',
      { 'actors/turn/a.ts': `const load = () => import('../../providers/openai/openai.ts');` },
      [
        'src/actors/turn/a.ts imports src/providers/openai/openai.ts: only library/integrations/database.ts, library/runtime, cli.ts, cli may import an adapter',
      ],
    ],
    [
      'an adapter in a root file',
      {
        'index.ts': `export { x } from './store/sqlite/driver.ts';`,
        'other.ts': `import './queue/in-process.ts';`,
      },
      [
        'src/index.ts imports src/store/sqlite/driver.ts: only library/integrations/database.ts, library/runtime, cli.ts, cli may import an adapter',
        'src/other.ts imports src/queue/in-process.ts: only library/integrations/database.ts, library/runtime, cli.ts, cli may import an adapter',
      ],
    ],
    [
      'a value of the runtime in the gateway',
      { 'http/app.ts': `import { Troupe } from '../library/troupe.ts';` },
      ['src/http/app.ts imports src/library/troupe.ts: http may import only types of it (import type)'],
    ],
    [
      'the command line',
      { 'library/runtime/a.ts': `import '../../cli.ts';` },
      ['src/library/runtime/a.ts imports src/cli.ts: no file may import the command line'],
    ],
    [
      'a package that a pure layer must not have',
      { 'context/a.ts': `import { readFileSync } from 'node:fs';` },
      ['src/context/a.ts imports node:fs: context may use unhomoglyph, zod, node:crypto only'],
    ],
    [
      'the clock and chance in a pure layer',
      { 'machines/a.ts': 'const id = `${Date.now()}`;\nconst die = Math.random();\nnew Date();' },
      [
        'src/machines/a.ts uses Date.now: machines is pure, take it as an argument',
        'src/machines/a.ts uses new Date: machines is pure, take it as an argument',
        'src/machines/a.ts uses Math.random: machines is pure, take it as an argument',
      ],
    ],
    [
      'a cycle, types included',
      {
        'store/a.ts': `import { b } from './b.ts';`,
        'store/b.ts': `import { c } from './c.ts';`,
        'store/c.ts': `import type { A } from './a.ts';`,
      },
      ['import cycle: src/store/a.ts -> src/store/b.ts -> src/store/c.ts -> src/store/a.ts'],
    ],
    [
      'an import against the order of the folders of a room, types included',
      {
        'queue/redis/a.ts': `import type { B } from '../bullmq/b.ts';`,
        'queue/router.ts': `import type { A } from './redis/a.ts';`,
        'queue/bullmq/b.ts': `import { router } from '../router.ts';`,
      },
      [
        'src/queue/redis/a.ts imports src/queue/bullmq/b.ts: redis is below bullmq in the room queue',
        'src/queue/router.ts imports src/queue/redis/a.ts: . is below redis in the room queue',
        'import cycle: src/queue/redis/a.ts -> src/queue/bullmq/b.ts -> src/queue/router.ts -> src/queue/redis/a.ts',
      ],
    ],
    [
      'a folder without a place in its room',
      { 'queue/kafka/a.ts': '' },
      ['src/queue/kafka/a.ts: the folder kafka has no place in FOLDERS.queue of test/layers.ts'],
    ],
    [
      'a folder without a rule',
      { 'utils/a.ts': '' },
      ['src/utils/a.ts: the folder utils has no rule in test/layers.ts'],
    ],
  ])('reports %s', (_, files, problems) => {
    expect(check(files)).toEqual(problems);
  });

  test('reports packages that the core imports, and packages that import the core outside the seam', () => {
    expect(
      check({
        'library/runtime/create-troupe.ts': `import { nostr } from '../../../packages/nostr/src/index.ts';`,
        'cli/commands/nostr.ts': `const load = () => import('@troupe/nostr' as string);`,
        'library/integrations/nostr.ts': `const load = () => import('@troupe/nostr' as string);`,
      }),
    ).toEqual([
      'src/library/runtime/create-troupe.ts imports packages/nostr/src/index.ts: a package is loaded by its name, in its loader only',
      'src/cli/commands/nostr.ts imports @troupe/nostr: a package is loaded by its name, in its loader only',
    ]);
    expect(
      checkPackages([
        {
          path: 'packages/a/src/troupe.ts',
          text: `export * from '../../../src/library/integrations/index.ts';`,
        },
        { path: 'packages/a/src/b.ts', text: `import type { Clock } from '../../../src/base/clock.ts';` },
        { path: 'packages/a/src/c.ts', text: `import * as z from 'zod';\nimport { b } from './b.ts';` },
        {
          path: 'packages/client/src/troupe.ts',
          text: `export * from '../../../src/library/integrations/index.ts';`,
        },
      ]),
    ).toEqual([
      'packages/a/src/b.ts imports src/base/clock.ts: a package imports src/library/integrations/index.ts, src/index.ts only, in packages/a/src/troupe.ts',
      'packages/client/src/troupe.ts imports src/library/integrations/index.ts: a package imports src/http/api/client.ts only, in packages/client/src/troupe.ts',
    ]);
  });

  test('accepts allowed imports, and ignores comments and strings', () => {
    const files = {
      'context/a.ts': [
        `import { createHash } from 'node:crypto';`,
        `import { Event, type EventId } from '../events/index.ts';`,
        `// import x from '../store/store.ts'; Date.now()`,
        `/** import y from '../store/store.ts'; */`,
        `const told = 'never call Date.now() or import("../cli.ts")';`,
        `export const processed = new Date(told).toISOString();`,
      ].join('\n'),
      'actors/turn/a.ts': `import type { Store } from '../../store/store.ts';\nimport { toolSpec } from '../../tools/tool.ts';`,
      'http/app.ts': `import type { Troupe } from '../library/troupe.ts';`,
      'library/runtime/create-troupe.ts': `import { open } from '../../store/sqlite/driver.ts';`,
      'troupe.ts': `import { app } from './gateway/app.ts';`,
      'index.ts': `export { createTroupe } from './runtime.ts';\nexport type { Store } from './store/store.ts';`,
      'library/runtime/a.ts': `import { open } from '../../store/sqlite/driver.ts';`,
    };
    const told = `const told = 'never call Date.now() or import("../cli.ts")';`;
    expect(files['context/a.ts']).toContain(told);
    expect(check(files)).toEqual([]);
  });
});

function filesOf(folder: string): SourceFile[] {
  if (!existsSync(path.join(ROOT, folder))) return [];
  return readdirSync(path.join(ROOT, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && WRITTEN_BY_HAND.test(entry.name))
    .map((entry) => path.join(entry.parentPath, entry.name))
    .filter((file) => !/[\\/](?:node_modules|dist)[\\/]/.test(file.slice(ROOT.length)))
    .map((file) => ({
      path: path.relative(ROOT, file).replaceAll(path.sep, '/'),
      text: readFileSync(file, 'utf8'),
    }));
}
