import { expect, test } from 'vitest';
import type { AgentInput } from '../../src/library/config/agent-input.ts';
import { type CustomAgent, defineProvider, type ModelRequest, parseTroupe } from '../../src/index.ts';
import { NO_USAGE } from '../../src/events/index.ts';
import { startFakeOpenAi } from '../../packages/testing/src/fake-vendors.ts';
import { openTroupe } from '../support/mode.ts';
import { ownProvider } from '../support/own-provider.ts';

const custom = (id: string, more: Partial<AgentInput> = {}) =>
  ({ id, provider: 'custom', adapter: 'mine', model: 'm1', contextWindow: 50_000, ...more }) as AgentInput;

test('an agent speaks through a provider that the program brings', async () => {
  const requests: ModelRequest[] = [];
  const mine = defineProvider({
    name: 'mine',
    async *read(request) {
      requests.push(request);
      yield { type: 'text', delta: 'Hello ' };
      yield { type: 'text', delta: 'from mine.' };
      yield { type: 'done', stop: 'end', usage: NO_USAGE };
    },
  });
  await using troupe = await openTroupe({ agents: [custom('bo')], providers: { mine } });
  expect((await troupe.ask('c', 'hi')).text).toBe('Hello from mine.');
  expect(requests[0]).toMatchObject({ model: 'm1', maxOutputTokens: 4_096 });
  expect(requests[0]?.messages.at(-1)?.content).toContain('hi');
});

test('it can be made for each agent, and gets its settings and secret headers', async () => {
  const made: CustomAgent[] = [];
  const mine = (agent: CustomAgent) => {
    made.push(agent);
    return defineProvider({
      name: 'mine',
      async *read() {
        yield { type: 'text', delta: `${agent.id} at ${agent.temperature}` };
        yield { type: 'done', stop: 'end', usage: NO_USAGE };
      },
    });
  };
  const settings = {
    effort: 'high',
    providerOptions: { a: 1 },
    headers: { 'X-Team': 'red' },
    headersEnv: { 'X-Gateway': 'GATEWAY' },
  };
  const agents = [
    custom('bo', { temperature: 0.2, ...settings } as Partial<AgentInput>),
    custom('cy', { temperature: 0.9 }),
  ];
  const env = { GATEWAY: 'gateway-secret-4711' };
  await using troupe = await openTroupe({ agents, providers: { mine } }, { env });
  expect((await troupe.ask('c', { to: ['cy'], content: 'hi' })).text).toBe('cy at 0.9');
  expect(made).toEqual([
    {
      id: 'bo',
      model: 'm1',
      maxOutputTokens: 4_096,
      temperature: 0.2,
      effort: 'high',
      providerOptions: { a: 1 },
      headers: { 'X-Team': 'red', 'X-Gateway': 'gateway-secret-4711' },
    },
    { id: 'cy', model: 'm1', maxOutputTokens: 4_096, temperature: 0.9 },
  ]);
});

test('what it throws is a failure of the turn by its status, without its key', async () => {
  await using server = await startFakeOpenAi(() => ({
    error: { code: 'provider_auth', message: 'key-of-test is wrong' },
  }));
  const providers = { mine: ownProvider(server.url) };
  await using troupe = await openTroupe(
    { agents: [custom('bo')], providers },
    { onWarning: () => undefined },
  );
  const { outcome, failures } = await troupe.ask('c', 'hi');
  expect([outcome, failures[0]?.code]).toEqual(['failed', 'provider_auth']);
  expect(failures[0]?.message).not.toContain('key-of-test');
});

test('an adapter that is not among the providers is refused with the known ones', async () => {
  const mine = ownProvider('http://127.0.0.1:1');
  expect(() =>
    parseTroupe({ agents: [custom('bo', { adapter: 'mime' } as never)], providers: { mine } }),
  ).toThrow('agents[0].adapter: there is no "mime" in "providers"; did you mean "mine"? known: mine');
  expect(() => parseTroupe({ agents: [custom('bo')], providers: { mine: 3 } })).toThrow(
    'providers.mine: a provider is made with defineProvider',
  );
  expect(() => defineProvider({ name: 'not a name', read: (() => []) as never })).toThrow(
    /the name of a provider must match/,
  );
});

test('one provider for all agents cannot take the options of one of them', async () => {
  const agents = [custom('bo', { effort: 'high' } as Partial<AgentInput>)];
  const mine = ownProvider('http://127.0.0.1:1');
  await expect(openTroupe({ agents, providers: { mine } })).rejects.toThrow(
    /agent "bo": the provider "own" is the same for all agents, so it cannot take "effort" of one: write \(agent\)/,
  );
});

const OLD = { specificationVersion: 'v3', provider: 'x', modelId: 'm', doStream: () => undefined };

test.each([
  ['nothing', () => undefined, /"mine" in "providers" returns is no provider: return defineProvider/],
  ['a promise', () => Promise.resolve(ownProvider('http://127.0.0.1:1')), /and not a promise of it/],
  ['half a provider', () => ({ stream: 1 }), /is no provider/],
  ['an old model of the AI SDK', () => OLD, /returns is a model of version v3 .* v4 is needed/],
])('a function that returns %s is refused with its name', async (_, mine, message) => {
  const opened = openTroupe({ agents: [custom('bo')], providers: { mine: mine as never } });
  await expect(opened).rejects.toMatchObject({
    code: 'config_invalid',
    message: expect.stringMatching(message) as string,
  });
});
