import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ActorAddress } from '../../src/events/index.ts';
import { createInProcessRouter } from '../../src/queue/in-process.ts';
import type { WakeOutcome } from '../../src/queue/router.ts';
import { createFakeClock } from '../../packages/testing/src/fake-clock.ts';

/**
 * Random moves against the in-process router: wakes, delayed wakes, ends of handlers in every way and order, and time.
 * Afterwards all work runs to its end, and every wake must have had its start.
 */
const ACTORS = 4;
const MAX_DELAY_MS = 1_000;
const ADDRESSES = Array.from({ length: ACTORS }, (_, index) =>
  ActorAddress.parse({ tenant: 'default', conversation: 'c1', agent: `a${index}` }),
);

type Ending = WakeOutcome | { kind: 'throw' };
type Move =
  | { move: 'wake'; actor: number; delayMs: number }
  | { move: 'end'; pick: number; ending: Ending }
  | { move: 'microtasks'; count: number }
  | { move: 'advance'; ms: number };

const actor = fc.nat(ACTORS - 1);
const ms = fc.nat(MAX_DELAY_MS);
const ending: fc.Arbitrary<Ending> = fc.oneof(
  { weight: 3, arbitrary: fc.constant<Ending>({ kind: 'done' }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('busy' as const), retryInMs: ms }) },
  { weight: 1, arbitrary: fc.constant<Ending>({ kind: 'throw' }) },
);
const play: fc.Arbitrary<Move[]> = fc.array(
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        move: fc.constant('wake' as const),
        actor,
        delayMs: fc.oneof(fc.constant(0), fc.constant(0), ms),
      }),
    },
    { weight: 4, arbitrary: fc.record({ move: fc.constant('end' as const), pick: fc.nat(), ending }) },
    { weight: 2, arbitrary: fc.record({ move: fc.constant('microtasks' as const), count: fc.nat(6) }) },
    { weight: 1, arbitrary: fc.record({ move: fc.constant('advance' as const), ms }) },
  ),
  { maxLength: 60 },
);

interface Expected {
  agent: string;
  dueAt: number;
  /** Total number of starts when the wake was made. */
  after: number;
}

async function perform(moves: readonly Move[], concurrency: number, startAfter: number): Promise<void> {
  const clock = createFakeClock();
  const router = createInProcessRouter({ clock });
  const starts: { agent: string; at: number }[] = [];
  const running: { agent: string; end: (ending: Ending) => void }[] = [];
  const expected: Expected[] = [];
  let thrown = 0;
  let reported = 0;
  let dry = false;

  async function handler({ agent }: ActorAddress): Promise<WakeOutcome> {
    expect(
      running.map((each) => each.agent),
      'parallel runs of one actor',
    ).not.toContain(agent);
    starts.push({ agent, at: clock.monotonic() });
    if (dry) return { kind: 'done' };
    const ended = await new Promise<Ending>((end) => {
      running.push({ agent, end });
      expect(running.length).toBeLessThanOrEqual(concurrency);
    });
    if (ended.kind !== 'throw') return ended;
    thrown += 1;
    throw new Error('thrown by a handler');
  }

  async function make(move: Move): Promise<void> {
    switch (move.move) {
      case 'wake': {
        const address = ADDRESSES[move.actor] ?? expect.fail();
        expected.push({
          agent: address.agent,
          dueAt: clock.monotonic() + move.delayMs,
          after: starts.length,
        });
        return router.wake(address, { delayMs: move.delayMs });
      }
      case 'end':
        return running.splice(move.pick % Math.max(1, running.length), 1)[0]?.end(move.ending);
      case 'microtasks':
        for (let turn = 0; turn < move.count; turn += 1) await Promise.resolve();
        return;
      case 'advance':
        return clock.advance(move.ms);
    }
  }

  const failures: unknown[] = [];
  const start = () =>
    router.start(handler, {
      concurrency,
      onError: (error) => {
        if (error instanceof Error && error.message === 'thrown by a handler') reported += 1;
        else failures.push(error);
      },
    });

  for (const [index, move] of moves.entries()) {
    if (index === startAfter) start();
    await make(move);
  }
  if (startAfter >= moves.length) start();

  dry = true;
  for (const { end } of running.splice(0)) end({ kind: 'done' });
  await clock.advance(2 * MAX_DELAY_MS);

  expect(failures).toEqual([]);
  expect(reported).toBe(thrown);
  expect(await router.depth()).toEqual({ waiting: 0, active: 0, delayed: 0 });
  for (const wake of expected) {
    const served = starts.slice(wake.after).some(({ agent, at }) => agent === wake.agent && at >= wake.dueAt);
    expect(served, `wake ${JSON.stringify(wake)} among starts ${JSON.stringify(starts)}`).toBe(true);
  }
  expect(starts.length, 'a start without a wake or a busy outcome').toBeLessThanOrEqual(
    expected.length + moves.filter((move) => move.move === 'end' && move.ending.kind === 'busy').length,
  );
  await router.close();
}

test('in any interleaving every wake is followed by a start, never parallel for one actor, within the concurrency', async () => {
  await fc.assert(fc.asyncProperty(play, fc.integer({ min: 1, max: 3 }), fc.nat(20), perform), {
    numRuns: 1_000,
  });
});
