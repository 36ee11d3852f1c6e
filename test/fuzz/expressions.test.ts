import { analyse } from 'scslre';
import { beforeAll, expect, test } from 'vitest';
import {
  composedExpressions,
  composedPlacesIn,
  type Expression,
  hostileRepetitions,
  literalsIn,
  matcher,
  measureGrowth,
  OPERATORS_PATTERNS,
  plainRepetitions,
} from '../../fuzz/expressions/index.ts';
import { OUTSIDE_TEXTS } from '../../fuzz/targets/outside-texts.ts';

/** External texts reach most expressions of `src` and of the importers, and no expression can be shown to be out of reach. */

const literals = [...literalsIn(), ...literalsIn('packages/importers/src')];
let composed: Expression[] = [];
beforeAll(async () => {
  composed = await composedExpressions();
});

const all = () => [...new Map([...literals, ...composed].map((each) => [keyOf(each), each])).values()];
const keyOf = ({ source, flags }: Expression) => `${source} ${flags}`;

test('every composed expression is known, or is a pattern of the operator', () => {
  const known = new Set(composed.map(({ where }) => where));
  const unknown = composedPlacesIn().filter(
    ({ where, code }) => !known.has(where) && !OPERATORS_PATTERNS.has(`${where.split(':')[0]} ${code}`),
  );
  expect(literals.length).toBeGreaterThan(300);
  expect(composed.length).toBeGreaterThan(100);
  expect(unknown).toEqual([]);
});

test('a published checker finds no expression that can take more than linear time', () => {
  const found = all().flatMap(({ where, source, flags }) =>
    analyse({ source, flags }, { maxReports: 1 }).reports.map(({ type }) => `${where} ${type} /${source}/`),
  );
  expect(found).toEqual([]);
});

test('no expression takes more than linear time for texts made for it', () => {
  const found = all().flatMap((expression) => {
    const take = matcher(expression);
    for (const repetition of hostileRepetitions(expression)) {
      const growth = measureGrowth(take, repetition);
      if (growth) return [{ where: expression.where, source: expression.source, ...repetition, ...growth }];
    }
    return [];
  });
  expect(found).toEqual([]);
}, 1_800_000);

test.each(Object.keys(OUTSIDE_TEXTS))('%s takes linear time for ever longer texts', (name) => {
  const take = OUTSIDE_TEXTS[name] ?? expect.fail();
  const found = plainRepetitions().flatMap((repetition) => {
    const growth = measureGrowth(take, repetition);
    return growth ? [{ ...repetition, ...growth }] : [];
  });
  expect(found).toEqual([]);
});

test.each([
  ['a repetition that begins anywhere', / +$/],
  ['two that share letters', /^\s*a?\s*:/],
  ['a repetition of repetitions', /^(?:\n#+ [^\n]*\s*)+$/],
  ['a beginning that comes again within what follows it', /\beyJ[\w-]{10,}\./],
  ['an end that comes again and again', /^a.*x[x"]*(?: \(b [^)]*\))?$/],
])('%s is found to be slow', (_, { source, flags }) => {
  const take = matcher({ source, flags });
  const slow = hostileRepetitions({ source, flags }).find(
    (each) => measureGrowth(take, each, { tries: 1 }) !== null,
  );
  expect(slow).toBeDefined();
});
