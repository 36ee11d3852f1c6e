import { expect, test } from 'vitest';
import { readRecord } from '../../scripts/ratchet.ts';
import {
  CODE,
  arrowsUpIn,
  type CodeWeight,
  medianOf,
  namesIn,
  settingsIn,
  sourceOf,
  weighCode,
  worseThan,
} from '../../scripts/weigh-code.ts';

test('the code is no heavier than its record says', () => {
  const worse = worseThan(readRecord(CODE), weighCode());
  expect(
    worse,
    `${worse.join('\n')}\nMake it lighter, or: npm run weigh:code -- --save --raise "why"`,
  ).toEqual([]);
});

test('a count that is worse is named, and one that is better is not', () => {
  const record: CodeWeight = { ...weighCode(), lines: 100, medianFile: 200, exports: 10 };
  expect(worseThan(record, { ...record, lines: 101, medianFile: 199, exports: 9 })).toEqual([
    'lines: 101, the record says 100',
    'medianFile: 199, the record says 200',
  ]);
  expect(worseThan(record, { ...record, lines: 99, medianFile: 201 })).toEqual([]);
});

test('imports, exports and names are counted as they are written here', () => {
  const text = [
    "import { a, type B } from './b.ts';",
    "import type {\n  C,\n  D,\n} from '../c/c.ts';",
    "export { a, type B } from './b.ts';",
    'export interface E {}',
    'export async function f() {\n  function g() {}\n}',
    "const told = 'import { x } from y';",
    '',
  ].join('\n');
  expect(sourceOf('src/a/a.ts', text)).toEqual({
    file: 'src/a/a.ts',
    lines: 11,
    imports: ['./b.ts', '../c/c.ts', './b.ts'],
    exports: 4,
    functions: new Set(['f', 'g']),
  });
});

test('neither slicing nor lumping helps: the median weighs lines, arrows up are the fewest that an order leaves', () => {
  const source = (file: string, lines: number, imports: string[] = [], functions: string[] = []) => ({
    file,
    lines,
    imports,
    exports: 0,
    functions: new Set(functions),
  });
  const slices = Array.from({ length: 10 }, (_, index) => source(`src/a/${index}.ts`, 10));
  expect(medianOf([...slices, source('src/b/b.ts', 90)])).toBe(10);
  expect(medianOf([...slices, source('src/b/b.ts', 110)])).toBe(110);
  const oneWay = [
    source('src/a/a.ts', 1, ['../b/b.ts', './c/c.ts']),
    source('src/a/c/c.ts', 1, ['../../b/b.ts']),
  ];
  expect(arrowsUpIn([...oneWay, source('src/b/b.ts', 1)])).toBe(0);
  expect(arrowsUpIn([...oneWay, source('src/b/b.ts', 1, ['../a/a.ts'])])).toBe(1);
  const named = ['a', 'b', 'c'].map((name) => source(`src/${name}.ts`, 1, [], ['keyOf', name]));
  expect(namesIn(named, 3)).toBe(1);
});

test('a setting counts once for all variants and all places of its declaration', () => {
  const cap = { properties: { tokens: {} } };
  const variant = (...names: string[]) => ({
    properties: Object.fromEntries(names.map((name) => [name, {}])),
  });
  const schema = {
    properties: {
      agents: { items: { oneOf: [variant('model', 'url'), variant('model')] } },
      tenant: { $ref: '#/$defs/cap' },
      caps: { properties: { tenant: { $ref: '#/$defs/cap' }, agent: { $ref: '#/$defs/cap' } } },
    },
    $defs: { cap },
  };
  // agents, model, url, tenant, tokens, caps, agent
  expect(settingsIn(schema)).toBe(7);
});
