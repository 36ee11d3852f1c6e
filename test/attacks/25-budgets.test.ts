import fc from 'fast-check';
import { expect } from 'vitest';
import { countTokens } from '../../src/context/count-tokens.ts';
import type { FakeReply } from '../../src/testing/fake-reply.ts';
import { attack } from './attack.ts';
import { ANA, type AttackStage, openStage, only, shownIn } from './stage.ts';

const TASKS = 40;
const CAP = 8_000;
const ANSWER_TOKENS = 200;
const WORKER = { id: 'worker', maxOutputTokens: ANSWER_TOKENS };
const BUDGETS = { agents: { worker: { tokens: CAP } } };

/** What the calls of the worker had cost at least: their prompts. */
function promptsOf(stage: AttackStage): number {
  return stage.sentBy('worker').reduce((sum, messages) => sum + countTokens(shownIn(messages)), 0);
}

async function lineOf(stage: AttackStage) {
  const [line] = await stage.troupe.budgets({ agent: 'worker' });
  if (!line) throw new Error('there is no such budget');
  return line;
}

attack(25, 'tasks given all at once take no more than their budget', async (refused) => {
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
    company: { limits: { maxOpenTasks: TASKS }, budgets: BUDGETS },
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

const evasion = fc.constantFrom('cancel', 'break', 'overload');

attack(25, 'calls that are cancelled, cut or tried again are paid for too', async (refused) => {
  await fc.assert(
    fc.asyncProperty(fc.array(evasion, { minLength: 1, maxLength: 3 }), async (ways) => {
      let way = 'cancel';
      const answers: Record<string, FakeReply> = {
        cancel: { text: 'a long answer', breaks: { after: 1, how: 'hang' } },
        break: { text: 'a long answer', breaks: { after: 1, how: 'cut' } },
        overload: { text: 'a long answer', error: { code: 'provider_overloaded', retryAfter: '0', after: 1 } },
      };
      await using stage = await openStage({
        agents: [WORKER],
        answer: () => answers[way] ?? {},
        company: { budgets: BUDGETS, limits: { maxAttempts: 2 } },
      });
      let failure: string | undefined;
      for (let turn = 0; turn < TASKS && failure !== 'budget_exceeded'; turn++) {
        way = ways[turn % ways.length] ?? 'cancel';
        const conversation = `c${turn}`;
        const asked = stage.vendor.requests.length;
        await stage.troupe.send(conversation, { author: ANA, content: 'hello', to: ['worker'] });
        if (way === 'cancel') {
          await expect.poll(async () => stage.vendor.requests.length > asked || (await ended(stage, conversation))).toBe(true);
          await stage.command({ command: 'abort', turn: `${conversation}:worker:1` });
        }
        await stage.troupe.idle();
        failure = only(await stage.events(conversation), 'turn.failed').at(-1)?.body.code;
      }
      expect(failure).toBe('budget_exceeded');
      expect(promptsOf(stage)).toBeLessThanOrEqual(CAP);
      const line = await lineOf(stage);
      expect(line.spent.tokens + line.held.tokens).toBeGreaterThanOrEqual(promptsOf(stage));
      const asked = stage.vendor.requests.length;
      await stage.say('last', 'hello', { to: ['worker'] });
      expect(stage.vendor.requests).toHaveLength(asked);
    }),
    { numRuns: 3 },
  );
  refused('turn.failed budget_exceeded');
});

async function ended(stage: AttackStage, conversation: string): Promise<boolean> {
  return only(await stage.events(conversation), 'turn.failed').length > 0;
}
