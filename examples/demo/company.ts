import { setTimeout as sleep } from 'node:timers/promises';
import * as z from 'zod';
import { type Clock, defineTool, defineTroupe, systemClock, type TroupeInput } from '../../src/index.ts';

export const REVIEWER_PUBKEY = 'a'.repeat(60) + '0042';

/** Ends when the scene's message is in the log. Until then the coder is busy. */
export interface TestRun {
  started: PromiseWithResolvers<void>;
  mayEnd: PromiseWithResolvers<void>;
}

export function newTestRun(): TestRun {
  return { started: Promise.withResolvers(), mayEnd: Promise.withResolvers() };
}

/** Three agents that follow a script. Rules replace the model; everything else is the real runtime. */
export function demoCompany({ slow, testRun }: { slow: boolean; testRun: TestRun }): TroupeInput {
  const pace = slow ? { delayMs: 150, chunk: 4, chunkDelayMs: 12 } : {};
  const runTests = defineTool({
    name: 'run_tests',
    description: 'Runs the tests of the project.',
    schema: z.object({ path: z.string() }),
    async run({ path }) {
      testRun.started.resolve();
      await testRun.mayEnd.promise;
      if (slow) await sleep(400);
      return `${path}: 42 passed, 0 failed`;
    },
  });
  const fallback = {
    reply:
      'I follow a script and have reached its end (this is answer {{n}} of mine). Give me a model in agents.ts, and ask again.',
    ...pace,
  };

  return defineTroupe({
    tools: [runTests],
    defaults: { respondWhenUnaddressed: 'planner' },
    agents: [
      {
        id: 'planner',
        name: 'Planner',
        role: 'manager',
        description: 'Turns wishes into plans.',
        instructions: 'Plan with the people. Hand over to @coder when a plan is agreed.',
        tools: ['handoff'],
        provider: 'scripted',
        script: {
          rules: [
            {
              when: { contains: 'We need a rate limiter' },
              reply:
                'A token bucket per API key would do. Which limits do we promise, and may we run a new service?',
              ...pace,
            },
            {
              when: { contains: 'Where do we stand' },
              reply:
                'Agreed: a token bucket in process, 100 a minute, bursts of 20, and 429 with Retry-After.',
              ...pace,
            },
            {
              when: { contains: 'Then build it', step: 1 },
              reply: 'Agreed by everybody, so over to the coder.',
              calls: [
                {
                  name: 'handoff',
                  args: {
                    to: 'coder',
                    goal: 'Rate limit the public API.',
                    done: 'Limits and storage are agreed with Ana and Ben.',
                    state: '100 a minute per key, bursts of 20, buckets in process, 429 with Retry-After.',
                    next: 'Write src/rate-limit.ts with tests.',
                    openQuestions: ['Do internal keys count?'],
                    why: 'You write the code.',
                  },
                },
              ],
              ...pace,
            },
            fallback,
          ],
        },
      },
      {
        id: 'coder',
        name: 'Coder',
        role: 'worker',
        description: 'Writes code and runs the tests.',
        instructions: 'Write small, tested code.',
        tools: ['run_tests'],
        provider: 'scripted',
        script: {
          rules: [
            {
              when: { contains: '100 requests a minute' },
              reply: 'That fits in a Map in process: two numbers per key, no new service.',
              ...pace,
            },
            {
              when: { contains: 'And when a key is over its limit' },
              reply: 'Then 429 with a Retry-After header, computed from the bucket.',
              ...pace,
            },
            {
              when: { contains: 'handed this conversation over to you' },
              reply:
                'Done: src/rate-limit.ts refills lazily; 38 tests. Internal keys count until somebody says otherwise.',
              ...pace,
            },
            {
              when: { contains: 'Fix both findings', step: 1 },
              reply: 'Fixing both, then running the tests.',
              calls: [{ name: 'run_tests', args: { path: 'test/rate-limit.test.ts' } }],
              ...pace,
            },
            {
              when: { contains: '42 passed', step: 2 },
              reply: 'Both are fixed: monotonic clock, and idle buckets are dropped. 42 tests pass.',
              ...pace,
            },
            {
              when: { contains: 'log what is refused' },
              reply: 'Refusals are logged now, at most one line per key and minute.',
              ...pace,
            },
            fallback,
          ],
        },
      },
      {
        id: 'reviewer',
        name: 'Reviewer',
        description: 'Finds what the others missed.',
        instructions: 'Review plans and code. Be brief and concrete.',
        pubkey: REVIEWER_PUBKEY,
        provider: 'scripted',
        script: {
          rules: [
            {
              when: { contains: 'check the plan' },
              reply: 'Sound. One gap: nobody has said what a client sees when it is over the limit.',
              ...pace,
            },
            {
              when: { contains: 'review the code', call: 1 },
              reply: REVIEW,
              fail: {
                after: REVIEW.indexOf('; second'),
                code: 'provider_truncated',
                message: 'the connection closed in the middle of the answer',
              },
              ...pace,
            },
            { when: { contains: 'review the code' }, reply: REVIEW, ...pace },
            fallback,
          ],
        },
      },
    ],
  });
}

const REVIEW =
  'Two findings: first, the refill trusts the wall clock, which can jump; second, idle buckets are never dropped.';

/** Advances only by `pass`, so that two runs of the demo show the same prompts. Waiting takes real time. */
export function createStoryClock(): Clock & { pass(minutes: number): void } {
  let now = Date.UTC(2026, 4, 4, 9, 0);
  return { ...systemClock, now: () => now, pass: (minutes) => (now += minutes * 60_000) };
}
