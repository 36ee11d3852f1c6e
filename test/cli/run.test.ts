import { expect, test } from 'vitest';
import { AGENTS, workplace } from './harness.ts';

const COMPANY = {
  ...AGENTS,
  workflows: [
    {
      id: 'release',
      directive: 'ship it',
      steps: [
        { id: 'plan', agent: 'planner', brief: 'write the plan' },
        { id: 'draft', agent: 'worker', brief: 'write the draft' },
      ],
    },
    { id: 'doomed', steps: [{ id: 'one', agent: 'broken', brief: 'try' }] },
  ],
};

test('run starts a workflow in a conversation and waits for its end', async () => {
  using place = workplace({ agents: COMPANY });
  const ran = await place.call(['run', 'c1', 'release', '--run', 'r1']);
  expect(ran).toMatchObject({ code: 0, err: '' });
  expect(ran.out).toMatch(/planner: plan 1[^]*step 2 of 2 \(draft, @worker\)[^]*worker: work 1/);
  expect(ran.out).toContain('is completed: ship it');
});

test('with a server it waits on request', async () => {
  using place = workplace({ agents: COMPANY });
  await using dev = await place.dev();
  const ran = await place.call(['run', 'c1', 'release', '--url', dev.url, '--wait', '--json']);
  expect(ran.json).toMatchObject({
    event: { kind: 'run.directive' },
    replies: [{ author: { id: 'planner' } }, { author: { id: 'worker' } }],
  });
});

test('a failed run says how to continue', async () => {
  using place = workplace({ agents: COMPANY });
  const refused = await place.call(['run', 'c1', 'doomed']);
  expect(refused.code).toBe(1);
  expect(refused.err).toContain('needs a directive');
  const failed = await place.call(['run', 'c1', 'doomed', '--directive', 'dare', '--run', 'r1']);
  expect(failed.code).toBe(1);
  expect(failed.out).toContain('to go on: troupe run c1 doomed --run r1 --step one');
  expect(failed.err).toContain('provider_auth');
});
