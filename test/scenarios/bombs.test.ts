import { expect, test } from 'vitest';
import { DEFAULT_LIMITS } from '../../src/actors/actor/engine-deps.ts';
import { type Author, ConversationId, DEFAULT_TENANT } from '../../src/events/index.ts';
import { startFakeOpenAi } from '../../packages/testing/src/fake-vendors.ts';
import { IS_DISTRIBUTED, openTroupe } from '../support/mode.ts';

const ANA: Author = { kind: 'user', id: 'ana', name: 'Ana' };
const FAN_OUT = 8;
const UNDER_WAY = 15;
/** Lower than the default: the cancellation affects hundreds of logs, on shared servers. */
const LIMITS = { maxTreeOpen: 40 };
/**
 * Concurrent turns of all processes, one waiting turn of each tenant and conversation, and room for steps under way.
 */
const SOON = 300;

test('a task bomb: others get answers meanwhile, and a cancellation ends all of it in every process', async () => {
  const modelOf = (body: unknown) => (body as { model: string }).model;
  await using stack = new AsyncDisposableStack();
  const vendor = await startFakeOpenAi(({ number, body }) => {
    if (modelOf(body) === 'cy') return { text: 'here I am' };
    const task = (index: number) => ({ to: 'bo', force: true, task: `part ${number}.${index}` });
    return {
      calls: Array.from({ length: FAN_OUT }, (_, index) => ({
        name: 'delegate',
        args: JSON.stringify(task(index)),
      })),
    };
  });
  stack.defer(() => vendor.close());
  const agent = (id: string, tools: string[]) => ({
    id,
    tools,
    provider: 'openai-compatible' as const,
    model: id,
    baseUrl: vendor.url,
    apiKeyEnv: 'KEY',
    contextWindow: 128_000,
  });
  const company = { agents: [agent('bo', ['delegate']), agent('cy', [])] };
  const options = { env: { KEY: 'key' }, constants: { limits: LIMITS }, onWarning: () => undefined };
  const data = `bombs-${process.pid}`;
  const troupe = stack.use(await openTroupe(company, IS_DISTRIBUTED ? { ...options, data } : options));
  if (IS_DISTRIBUTED) stack.use(await openTroupe(company, { ...options, data }));
  const asked = (id: string) => vendor.requests.filter(({ body }) => modelOf(body) === id).length;

  await troupe.send('bomb', { author: ANA, content: 'begin', to: ['bo'] });
  await expect.poll(() => asked('bo'), { timeout: 150_000 }).toBeGreaterThan(UNDER_WAY);
  for (const [tenant, conversation] of [
    ['zeta', 'talk'],
    [DEFAULT_TENANT, 'other'],
  ] as const) {
    const [bombs, others] = [asked('bo'), asked('cy')];
    await troupe.forTenant(tenant).send(conversation, { author: ANA, content: 'hello?', to: ['cy'] });
    await expect.poll(() => asked('cy'), { timeout: 150_000, interval: 1 }).toBe(others + 1);
    expect(asked('bo') - bombs, conversation).toBeLessThan(SOON);
  }

  const bomb = ConversationId.parse('bomb');
  await troupe.command({ command: 'cancelTask', conversation: bomb, task: 'all' }, ANA);
  const isOver = async () => {
    const known = await troupe.conversations(5_000);
    const open = await Promise.all(
      known.filter(({ id }) => id.startsWith('bomb')).map(({ id }) => troupe.tasks(id, { open: true })),
    );
    return open.every(({ tasks }) => tasks.length === 0);
  };
  await troupe.idle();
  await expect.poll(isOver, { timeout: 120_000, interval: 3_000 }).toBe(true);
  await troupe.idle();
  const threads = (await troupe.conversations(5_000)).filter(({ id }) => id.startsWith('bomb.'));
  expect(threads.length).toBeGreaterThan(FAN_OUT);
  expect(threads.length).toBeLessThanOrEqual(DEFAULT_LIMITS.maxTreeTasks);
  const quiet = asked('bo');
  const bo = { kind: 'agent', id: 'bo', name: 'bo' } as const;
  for (const { id } of threads.slice(0, 20))
    await troupe.send(id, { author: bo, content: 'go on', to: ['bo'] });
  await troupe.idle();
  expect(asked('bo')).toBe(quiet);
}, 400_000);
