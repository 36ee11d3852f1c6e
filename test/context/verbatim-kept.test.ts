import fc from 'fast-check';
import { expect, test } from 'vitest';
import { randomLog } from '../../score/random-log.ts';
import { measureRewrites } from '../../score/rewrites.ts';
import { randomOf } from '../../sim/random.ts';

/** Of the room up to the target, what a compaction may take for itself. */
const MOST_FOR_COMPACTION = 0.4;

const anyLog = fc.record({ seed: fc.nat(), window: fc.constantFrom(6_000, 12_000, 32_000) });

function rewritesOf({ seed, window }: { seed: number; window: number }) {
  const log = randomLog(randomOf(seed, 'verbatim'), window * 2);
  return measureRewrites(log, { window }).rewrites;
}

test('a rewrite of a request that fits gains at least a fifth of the room', () => {
  let seen = 0;
  fc.assert(
    fc.property(anyLog, (given) => {
      for (const { gain, fitted } of rewritesOf(given)) {
        seen += 1;
        if (fitted) expect(gain).toBeGreaterThanOrEqual(0.2);
      }
    }),
    { numRuns: 60 },
  );
  expect(seen).toBeGreaterThan(0);
});

test('a compaction covers nothing newer than it must: up to the target, the newest messages stay', () => {
  let seen = 0;
  fc.assert(
    fc.property(anyLog, (given) => {
      for (const { kind, trims, wastes, rounds, tokens, room, distance } of rewritesOf(given)) {
        if (kind === 'prune' || trims) continue;
        seen += 1;
        // Else not even the newest of what it covers would have had room.
        if (!wastes) continue;
        expect(distance).toBeLessThanOrEqual(0.1);
        if (rounds < 3) expect(tokens).toBeGreaterThanOrEqual(room * (1 - MOST_FOR_COMPACTION));
      }
    }),
    { numRuns: 60 },
  );
  expect(seen).toBeGreaterThan(0);
});
