import { expect, test } from 'vitest';
import { fuzzTarget } from '../../fuzz/fuzz-target.ts';
import { TARGETS } from '../../fuzz/targets/index.ts';

/** A new seed each time, printed on failure; `npm run fuzz` makes the long runs. */
const SEED = Math.floor(Math.random() * 2 ** 31);

test.each([
  ['events', 2_000],
  ['fences', 500],
  ['imports', 1_500],
  ['routes', 1_000],
  ['frames', 800],
  ['hostile-model', 800],
  ['vendor-streams', 500],
  ['tool-schemas', 300],
  ['odd-model', 1_000],
  ['hostile-mcp', 300],
  ['costly-logs', 30],
  ['regex', 500],
])(
  '%s: nothing that is made up crashes, hangs, answers 500 or breaks what must hold',
  async (name, inputs) => {
    const target = await TARGETS[name]?.();
    if (!target) throw new Error(`there is no target ${name}`);
    const { findings, codes, inputs: done } = await fuzzTarget(target, { seed: SEED, inputs });
    await target.close?.();
    // Times are meaningless on a machine that runs other tests meanwhile.
    const wrong = findings.filter(({ kind }) => kind !== 'hang' && kind !== 'slow');
    expect(wrong, `again: npm run fuzz -- --only ${name} --seed ${SEED} --input N`).toEqual([]);
    expect(done).toBe(inputs);
    // A fuzzer whose inputs are all refused tests nothing behind the first check.
    expect((codes['accepted'] ?? 0) / inputs).toBeGreaterThan(0.1);
  },
);

test('the same seed gives the same inputs, each independent of the others', async () => {
  const { randomOf } = await import('../../sim/random.ts');
  for (const open of Object.values(TARGETS)) {
    const target = await open();
    const make = (number: number) => JSON.stringify(target.make(randomOf(SEED, `${target.name}/${number}`)));
    const inputs = [1, 2, 3].map(make);
    expect([1, 2, 3].map(make)).toEqual(inputs);
    expect(new Set(inputs).size).toBeGreaterThan(1);
  }
});

test('every kind of event has a valid sample', async () => {
  const { shapesOf } = await import('../../fuzz/targets/events.ts');
  const { sampleOf } = await import('../../fuzz/sample-of.ts');
  const { randomOf } = await import('../../sim/random.ts');
  const { EVENT_KINDS, EventDraft } = await import('../../src/events/index.ts');
  const random = randomOf(SEED, 'samples');
  const shapes = shapesOf(EventDraft);
  const kinds = new Set<unknown>();
  for (const shape of shapes) {
    for (let time = 0; time < 20; time++) {
      const parsed = EventDraft.safeParse(sampleOf(random, shape));
      if (parsed.success) kinds.add(parsed.data.kind);
    }
  }
  expect(kinds).toEqual(new Set(EVENT_KINDS));
});
