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

/** As in Bun and Deno, which lack these. */
const WITHOUT_HOOKS = `--import=data:text/javascript,${encodeURIComponent(
  "import m from 'node:module'; delete m.registerHooks; delete m.enableCompileCache; m.syncBuiltinESMExports();",
)}`;

test('the command runs where modules have no hooks and no cache, as in Bun and Deno', async () => {
  using place = workplace();
  const env = { NODE_OPTIONS: WITHOUT_HOOKS };
  expect((await place.run(['--version'], { env })).code).toBe(0);
  await using dev = await place.start(['dev', '--port', '0'], env);
  expect(dev.ready).toHaveProperty('url');
  const { code, err } = await place.run(['send', 'c', 'hello', '--wait'], { env });
  expect([code, err]).toEqual([0, '']);
});

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
