import fc from 'fast-check';
import { expect } from 'vitest';
import { countTokens } from '../../src/context/budget/tokens.ts';
import type { FakeReply } from '../../packages/testing/src/fake-vendors.ts';
import { attack } from './attack.ts';
import { ANA, type AttackStage, openStage, only, shownIn } from './stage.ts';

const TASKS = 40;
const CAP = 5_000;
const ANSWER_TOKENS = 200;
const WORKER = { id: 'worker', maxOutputTokens: ANSWER_TOKENS };
const BUDGETS = { agents: { worker: { tokens: CAP } } };

/** Minimum cost of the worker's calls: their prompts. */
function promptsOf(stage: AttackStage): number {
  return stage.sentBy('worker').reduce((sum, messages) => sum + countTokens(shownIn(messages)), 0);
}

async function lineOf(stage: AttackStage) {
  const [line] = await stage.troupe.budgets({ agent: 'worker' });
  if (!line) throw new Error('no such budget');
  return line;
}

attack(25, 'tasks given at the same time do not exceed their budget', async (refused) => {
  const usage = { input: 100, output: ANSWER_TOKENS, cacheRead: 0, cacheWrite: 0, reasoning: 0 };
  const calls = Array.from({ length: TASKS }, (_, n) => ({
    name: 'delegate',
    args: JSON.stringify({ to: 'worker', task: `do part ${n}` }),
  }));
  await using stage = await openStage({
    agents: [{ id: 'lead', tools: ['delegate'] }, WORKER],
    answer: ({ agent, last }) => {
      if (agent === 'worker') return { text: 'done', usage, delayMs: 1 };
      return last.includes('begin') ? { calls, chunk: 1_000 } : { text: 'that is all' };
    },
    company: { budgets: BUDGETS },
    troupe: { constants: { limits: { maxOpenTasks: TASKS } } },
  });
  await stage.say('c', 'begin', { to: ['lead'] });
  const { tasks } = await stage.troupe.tasks('c');
  expect(tasks).toHaveLength(TASKS);
  const outcomes = tasks.map(({ end }) => end?.outcome);
  expect(new Set(outcomes)).toEqual(new Set(['done', 'failed']));
  const line = await lineOf(stage);
  const billed = stage.sentBy('worker').length * (usage.input + usage.output);
  expect(billed).toBeLessThanOrEqual(CAP);
  expect([line.spent.tokens, line.held.tokens]).toEqual([billed, 0]);
  refused(`${outcomes.filter((each) => each === 'failed').length} of ${TASKS} tasks budget_exceeded`);
});

const evasion = fc.constantFrom('cancel' as const, 'break' as const, 'overload' as const);
const ANSWERS: Record<'cancel' | 'break' | 'overload', FakeReply> = {
  cancel: { text: 'a long answer', breaks: { after: 1, how: 'hang' } },
  break: { text: 'a long answer', breaks: { after: 1, how: 'cut' } },
  overload: { text: 'a long answer', error: { code: 'provider_overloaded', retryAfter: '0', after: 1 } },
};

attack(25, 'cancelled, interrupted and repeated calls are paid for, too', async (refused) => {
  await fc.assert(
    fc.asyncProperty(fc.array(evasion, { minLength: TASKS, maxLength: TASKS }), async (ways) => {
      await using stage = await openStage({
        agents: [WORKER],
        answer: ({ last }) => ANSWERS[ways[Number(/number (\d+)/.exec(last)?.[1])] ?? 'break'],
        company: { budgets: BUDGETS },
      });
      for (const n of ways.keys())
        await stage.troupe.send(`c${n}`, { author: ANA, content: `number ${n}`, to: ['worker'] });
      // Each hanging call is cancelled during its answer, before the vendor reports the cost.
      for (let work = 1; work > 0;) {
        const hanging = [...ways.keys()].filter((n) => ways[n] === 'cancel');
        await Promise.all(hanging.map((n) => stage.command({ command: 'abort', turn: `c${n}:worker:1` })));
        const { waiting, active, delayed } = await stage.troupe.queues();
        work = waiting + active + delayed;
      }
      const ends = (await Promise.all([...ways.keys()].map((n) => stage.events(`c${n}`)))).flat();
      expect(only(ends, 'turn.failed').map(({ body }) => body.code)).toContain('budget_exceeded');
      expect(only(ends, 'turn.done')).toEqual([]);
      expect(promptsOf(stage)).toBeLessThanOrEqual(CAP);
      const { spent, held } = await lineOf(stage);
      expect(spent.tokens + held.tokens).toBeGreaterThanOrEqual(promptsOf(stage));
      const asked = stage.vendor.requests.length;
      await stage.say('last', 'number 0', { to: ['worker'] });
      expect(stage.vendor.requests).toHaveLength(asked);
    }),
    { numRuns: 2, endOnFailure: true },
  );
  refused('turn.failed budget_exceeded');
});
