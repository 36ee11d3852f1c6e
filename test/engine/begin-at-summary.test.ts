import fc from 'fast-check';
import { expect, test } from 'vitest';
import { beginAtSummary, catchUp, type Folded } from '../../src/actors/log/read-log.ts';
import { createView, DEFAULT_POLICY, roomOf, scaledPolicy } from '../../src/context/index.ts';
import type { ActorAddress, Event } from '../../src/events/index.ts';
import { newTaskFold } from '../../src/machines/task-fold.ts';
import { SECRET } from '../support/log-player.ts';
import { moves, RandomRun } from '../support/random-run.ts';

const WINDOW = 4_000;
const FILLER = ' as was agreed before, the office keeps its folds in the second drawer;'.repeat(6);
const policy = scaledPolicy(DEFAULT_POLICY, WINDOW);
const room = roomOf({ available: WINDOW, fixed: 0, ratio: 1, reason: 'over_budget' }, policy);

function emptyFolds(agent: string): Folded {
  return { view: createView(agent as ActorAddress['agent'], SECRET), tasks: newTaskFold() };
}

function sourceOf(log: readonly Event[]) {
  return {
    readPage: async (_: unknown, { after, upTo }: { after: number; upTo?: number }) => ({
      events: log.slice(after, upTo),
      isLast: true,
    }),
    readById: async (_: unknown, id: string) => log.find((event) => event.id === id) ?? null,
  };
}

test('folds that begin at the summary in force are those of the whole log', async () => {
  let begun = 0;
  let afterSeveral = 0;
  const share = fc.integer({ min: 0, max: 9_999 }).map((n) => n / 10_000);
  await fc.assert(
    fc.asyncProperty(
      fc.array(moves, { minLength: 12, maxLength: 12 }).map((parts) => parts.flat()),
      share,
      async (all, where) => {
        const { player } = new RandomRun({ filler: FILLER, compaction: () => ({ policy, room }) }).play(all);
        const agents = new Set(player.sent.map(({ agent }) => agent));
        const log = player.sent.at(-1)?.log ?? [];
        for (const agent of agents) {
          const address = { tenant: 'default', conversation: 'c', agent } as ActorAddress;
          const end = Math.floor(where * (log.length + 1));
          const [cold, whole] = [emptyFolds(agent), emptyFolds(agent)];
          await beginAtSummary(sourceOf(log), address, cold, end);
          expect(cold.view.upTo).toBeLessThanOrEqual(end);
          begun += cold.view.upTo > 0 ? 1 : 0;
          const adopted = cold.view.cuts.filter(({ kind }) => kind === 'adopt');
          afterSeveral += adopted.length > 1 ? 1 : 0;
          await catchUp(sourceOf(log), address, cold);
          await catchUp(sourceOf(log), address, whole);
          expect(cold).toEqual(whole);
        }
      },
    ),
    { numRuns: 20, endOnFailure: true },
  );
  expect(begun).toBeGreaterThan(0);
  expect(afterSeveral).toBeGreaterThan(0);
});
