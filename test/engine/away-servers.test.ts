import { expect, test } from 'vitest';
import type { StateNote, TurnId } from '../../src/events/index.ts';
import { MAX_TRIES } from '../../src/machines/agent-lifecycle.ts';
import { createInProcessAdmission } from '../../src/queue/in-process-admission.ts';
import { createAnthropic } from '../../src/providers/anthropic/anthropic.ts';
import { createOpenAiCompatible } from '../../src/providers/openai/openai-compatible.ts';
import { createOpenAi } from '../../src/providers/openai/openai.ts';
import type { Provider } from '../../src/providers/provider.ts';
import {
  startFakeAnthropic,
  startFakeOpenAi,
  startFakeOpenAiResponses,
  type FakeHandler,
  type FakeServer,
} from '../../packages/testing/src/fake-vendors.ts';
import { describeEvent } from '../../src/cli/render/reply-printer.ts';
import { ANA, openStage, type Stage } from '../support/engine-stage.ts';
import { openDriver } from '../support/mode.ts';
import { untilHolds } from '../support/until-holds.ts';

/** The text of llama.cpp. */
const LOADING = {
  status: 503,
  headers: { 'content-type': 'application/json' },
  body: '{"error":{"message":"Loading model","type":"unavailable_error","code":503}}',
};
const FIVE_MINUTES_MS = 300_000;
/** More tries than any other failure gets. */
const LOADING_TRIES = 3 * MAX_TRIES;
const TURN = 'c:bo:1' as TurnId;

interface Vendor {
  start: (handler: FakeHandler) => Promise<FakeServer>;
  create: (options: { baseUrl: string; apiKey: string }) => Provider;
}
const VENDORS: Record<string, Vendor> = {
  anthropic: { start: startFakeAnthropic, create: createAnthropic },
  openai: { start: startFakeOpenAiResponses, create: createOpenAi },
  'openai-compatible': { start: startFakeOpenAi, create: createOpenAiCompatible },
};

/** The agent states that watchers receive. */
function watchStates(stage: Stage): StateNote[] {
  const notes: StateNote[] = [];
  stage.deps.onLive = (note) => void (note.type === 'state' && notes.push(note));
  return notes;
}

async function errorsOf(stage: Stage) {
  return (await stage.events('c')).flatMap((event) => (event.kind === 'error' ? [event] : []));
}

/** An agent that waits for a server that is still loading. */
async function openWaiting(server: FakeServer, options: Partial<Parameters<typeof openStage>[0]> = {}) {
  const model = createOpenAiCompatible({ baseUrl: server.url, apiKey: 'k' });
  const stage = await openStage({ random: () => 0.5, ...options, agents: [{ id: 'bo', model }] });
  const notes = watchStates(stage);
  await stage.say('c', 'go', ['bo']);
  await server.arrived(1);
  await untilHolds(() => expect(notes.at(-1)?.state).toBe('backoff'));
  return { stage, notes };
}

test.each(Object.entries(VENDORS))(
  'a turn waits for a server that loads its model and is answered then, %s',
  async (_, { start, create }) => {
    await using server = await start(({ number }) =>
      number <= LOADING_TRIES ? { raw: LOADING } : { text: 'here I am' },
    );
    const model = create({ baseUrl: server.url, apiKey: 'k' });
    const stage = await openStage({ agents: [{ id: 'bo', model }] });
    await stage.say('c', 'go', ['bo']);
    await stage.quiet();
    const events = await stage.events('c');
    expect(server.requests).toHaveLength(LOADING_TRIES + 1);
    expect(events.at(-1)?.kind).toBe('turn.done');
    // The log reports the wait once, however many tries there were.
    const [error, ...more] = await errorsOf(stage);
    expect(more).toEqual([]);
    expect(error?.body.message).toContain('Loading model');
    expect(error?.body.retryUntil).toBe((error?.at ?? 0) + FIVE_MINUTES_MS);
    expect(error && describeEvent(error)).toContain('; tried again until ');
    expect(await stage.check('c')).toEqual([]);
  },
);

test("a server that refuses connections is awaited for the agent's patience, and then named", async () => {
  const server = await startFakeOpenAi();
  await server.close();
  const model = createOpenAiCompatible({ baseUrl: server.url, apiKey: 'k' });
  const stage = await openStage({ agents: [{ id: 'bo', model }], limits: { patienceMs: 60_000 } });
  const notes = watchStates(stage);
  await stage.say('c', 'go', ['bo']);
  await stage.quiet();
  const events = await stage.events('c');
  // One error for the wait, and one for the last try.
  const [error, end, ...more] = await errorsOf(stage);
  expect(more).toEqual([]);
  expect(error?.body.retryUntil).toBe((error?.at ?? 0) + 60_000);
  expect(end?.body.retryUntil).toBe(undefined);
  const last = events.at(-1);
  expect(last).toMatchObject({ kind: 'turn.failed', body: { code: 'provider_unreachable' } });
  expect((last?.at ?? 0) - (error?.at ?? 0)).toBeGreaterThanOrEqual(60_000);
  const waits = notes.flatMap((note) =>
    note.state === 'backoff' && note.waits ? [{ ...note.waits, at: note.at }] : [],
  );
  expect(waits.length).toBeGreaterThan(MAX_TRIES);
  for (const { code, since, next, at } of waits) {
    expect(code).toBe('provider_unreachable');
    expect(since).toBe(waits[0]?.since);
    expect(next - at).toBeLessThanOrEqual(15_000);
    expect(next).toBeGreaterThanOrEqual(at);
  }
  expect(await stage.check('c')).toEqual([]);
});

test('a proxy whose server is gone is awaited, too', async () => {
  await using server = await startFakeOpenAi(({ number }) =>
    number <= MAX_TRIES + 1 ? { raw: { status: 502, body: '<html>bad gateway</html>' } } : { text: 'back' },
  );
  const model = createOpenAiCompatible({ baseUrl: server.url, apiKey: 'k' });
  const stage = await openStage({ agents: [{ id: 'bo', model }] });
  await stage.say('c', 'go', ['bo']);
  await stage.quiet();
  expect(server.requests).toHaveLength(MAX_TRIES + 2);
  expect((await stage.events('c')).at(-1)?.kind).toBe('turn.done');
});

test('an overloaded server that answers is tried no more often than before', async () => {
  await using server = await startFakeOpenAi(() => ({ error: { code: 'provider_overloaded' } }));
  const model = createOpenAiCompatible({ baseUrl: server.url, apiKey: 'k' });
  const stage = await openStage({ agents: [{ id: 'bo', model }] });
  await stage.say('c', 'go', ['bo']);
  await stage.quiet();
  expect(server.requests).toHaveLength(MAX_TRIES);
  expect(await errorsOf(stage)).toHaveLength(MAX_TRIES);
});

test('a turn that waits for a server ends at once when it is stopped', async () => {
  await using server = await startFakeOpenAi(() => ({ raw: LOADING }));
  const { stage } = await openWaiting(server);
  const asked = server.requests.length;
  await stage.troupe.command({ command: 'abort', turn: TURN }, ANA);
  await stage.quiet();
  expect((await stage.events('c')).at(-1)).toMatchObject({ kind: 'turn.aborted' });
  expect(server.requests).toHaveLength(asked);
});

test('turns that wait for a server leave their slots to others, and call it only with one', async () => {
  let isLoaded = false;
  let held = 0;
  const heldAtCalls: number[] = [];
  await using away = await startFakeOpenAi(() => {
    heldAtCalls.push(held);
    return isLoaded ? { text: 'back' } : { raw: LOADING };
  });
  await using good = await startFakeOpenAi(() => {
    heldAtCalls.push(held);
    return { text: 'here' };
  });
  const model = (baseUrl: string) => createOpenAiCompatible({ baseUrl, apiKey: 'k' });
  const agents = [
    { id: 'bo', model: model(away.url) },
    { id: 'cy', model: model(good.url) },
  ];
  const stage = await openStage({ random: () => 0.5, agents });
  const caps = { turnsPerTenant: 1 };
  const admission = createInProcessAdmission({ caps, clock: stage.clock });
  stage.deps.admission = {
    ...admission,
    async enter(address, provider) {
      const entry = await admission.enter(address, provider);
      if (entry.kind === 'full') return entry;
      held += 1;
      let isLeft = false;
      return {
        kind: 'admitted',
        leave: async () => {
          if (!isLeft) held -= 1;
          isLeft = true;
          await entry.leave();
        },
      };
    },
  };
  const notes = watchStates(stage);
  const dones = async () => (await stage.events('c')).filter(({ kind }) => kind === 'turn.done').length;
  await stage.say('c', 'go', ['bo']);
  await untilHolds(() => expect(notes.at(-1)?.state).toBe('backoff'));
  await stage.say('c', 'and you?', ['cy']);
  await untilHolds(async () => expect(await dones()).toBe(1));
  expect(good.requests).toHaveLength(1);
  // Stopped without a slot, the agent takes one for its next turn.
  await stage.say('c', 'then this', ['bo']);
  await stage.troupe.command({ command: 'abort', turn: TURN }, ANA);
  isLoaded = true;
  await stage.quiet();
  expect((await stage.events('c')).filter(({ kind }) => kind === 'turn.aborted')).toHaveLength(1);
  expect(await dones()).toBe(2);
  expect(heldAtCalls.length).toBeGreaterThanOrEqual(3);
  expect(new Set(heldAtCalls)).toEqual(new Set([1]));
  expect(held).toBe(0);
  expect(await stage.check('c')).toEqual([]);
});

test('a process that stops while a server is away releases the turn, and the next one asks once', async () => {
  const driver = await openDriver();
  let isLoaded = false;
  await using server = await startFakeOpenAi(() => (isLoaded ? { text: 'here' } : { raw: LOADING }));
  const { stage } = await openWaiting(server, { driver, limits: { soleOwner: false } });
  const asked = server.requests.length;
  const stopped = stage.engine.stop();
  await stage.clock.advance(10_000);
  await stopped;
  const record = await stage.actor('c', 'bo');
  expect([record.owner, record.until, record.turn?.attempt]).toEqual(['', 0, 0]);
  isLoaded = true;
  const model = createOpenAiCompatible({ baseUrl: server.url, apiKey: 'k' });
  const next = await openStage({
    driver,
    clock: stage.clock,
    agents: [{ id: 'bo', model }],
    limits: { soleOwner: false },
  });
  await next.say('c', 'and?', ['bo']);
  await next.quiet();
  const done = (await next.events('c')).filter(({ kind }) => kind === 'turn.done');
  expect(done).toHaveLength(2);
  expect(server.requests).toHaveLength(asked + 2);
  expect(await next.check('c')).toEqual([]);
});
