import { expect, test } from 'vitest';
import { countTokens } from '../../src/context/budget/tokens.ts';
import type { Author, Event } from '../../src/events/index.ts';
import {
  startFakeAnthropic,
  startFakeOpenAi,
  type FakeHandler,
  type FakeReply,
  type FakeRequest,
  type FakeServer,
} from '../../packages/testing/src/fake-vendors.ts';
import type { Troupe } from '../../src/library/troupe.ts';
import { mortal, tapDriver } from '../support/engine-driver.ts';
import { bytes, says, type TestModel } from '../support/engine-models.ts';
import { openStage, until } from '../support/engine-stage.ts';
import { openDriver, openTroupe } from '../support/mode.ts';
import {
  ask,
  fill,
  inPhase,
  kinds,
  mind,
  of,
  only,
  small,
  SUMMARY,
  labels,
} from '../support/compaction-stage.ts';

const UMA: Author = { kind: 'user', id: 'u1', name: 'Uma' };
const FILLER = 'the harbour office keeps its books in the second drawer, where nobody looks for them; ';
const SAID = Array.from({ length: 12 }, (_, n) => `w${n}z ${FILLER.repeat(36)}`);

/** Common part of two wire formats. */
interface Wire {
  name: string;
  provider: 'openai-compatible' | 'anthropic';
  start: (handler: FakeHandler) => Promise<FakeServer>;
  refusal: string;
  /** The window named in the refusal. */
  window: number;
}

const WIRES: Wire[] = [
  {
    name: 'OpenAI',
    provider: 'openai-compatible',
    start: startFakeOpenAi,
    refusal:
      "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
    window: 8_192,
  },
  {
    name: 'Anthropic',
    provider: 'anthropic',
    start: startFakeAnthropic,
    refusal: 'prompt is too long: 9210 tokens > 8200 maximum',
    window: 8_200,
  },
];

interface Sent {
  system: string;
  messages: { role: string; content: string }[];
  tools: unknown;
  isForSummary: boolean;
  tokens: number;
}

/** The sent request, independent of the format. */
function sentIn({ body }: FakeRequest): Sent {
  const { system, messages, tools } = body as {
    system?: unknown;
    messages: { role: string; content: unknown }[];
    tools?: unknown;
  };
  const all = messages.map(({ role, content }) => ({ role, content: textOf(content) }));
  const first = textOf(system ?? '') || (all[0]?.role === 'system' ? all[0].content : '');
  const rest = all.filter(({ role }) => role !== 'system');
  const tokens = countTokens(first) + rest.reduce((sum, { content }) => sum + countTokens(content), 0);
  return {
    system: first,
    messages: rest,
    tools,
    isForSummary: first.startsWith('You keep the record'),
    tokens,
  };
}

function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  return (content as { text?: string }[]).map(({ text = '' }) => text).join('');
}

/** A model that accepts at most so many tokens and refuses larger requests. */
function takes(most: number, message: string, summary: FakeReply = { text: SUMMARY }): FakeHandler {
  return (request) => {
    const { tokens, isForSummary } = sentIn(request);
    if (tokens > most) return { error: { code: 'context_overflow', message } };
    return isForSummary ? summary : { text: 'understood', usage: null };
  };
}

async function roomOn(
  wire: Wire,
  server: FakeServer,
  more: { contextWindow?: number } = {},
): Promise<Troupe> {
  const { provider } = wire;
  const agent = {
    id: 'bo',
    provider,
    model: 'm',
    baseUrl: server.url,
    contextWindow: 128_000,
    maxOutputTokens: 1_000,
    ...more,
  };
  return openTroupe({ agents: [agent] }, { env: { OPENAI_API_KEY: 'k', ANTHROPIC_API_KEY: 'k' } });
}

async function sayAll(troupe: Troupe, room = 'c'): Promise<void> {
  for (const content of SAID) await troupe.send(room, { author: UMA, content });
}

async function askAll(troupe: Troupe, content: string, room = 'c'): Promise<Event[]> {
  await troupe.send(room, { author: UMA, content, to: ['bo'] });
  await troupe.idle();
  return (await troupe.events(room)).events;
}

test.each(WIRES)(
  'a request that $name refuses as too long is shortened by one compaction and sent once more',
  async (wire) => {
    await using server = await wire.start(takes(7_000, wire.refusal));
    await using troupe = await roomOn(wire, server);
    await sayAll(troupe);
    const events = await askAll(troupe, 'Where are the books?');
    const sent = server.requests.map(sentIn);
    expect(sent.map(({ isForSummary }) => isForSummary)).toEqual([false, true, false]);
    const [refused, , again] = sent;
    expect(refused?.tokens).toBeGreaterThan(7_000);
    expect(again?.tokens).toBeLessThan(4_000);
    expect(again?.system).toBe(refused?.system);
    expect(again?.messages[0]).toMatchObject({
      role: 'user',
      content: expect.stringContaining('Summary 1 of this'),
    });
    expect(again?.messages[0]?.content).toContain('@bo keeps them.');
    const last = again?.messages.at(-1);
    expect(last?.role).toBe('user');
    expect(last?.content).toContain('Where are the books?');
    const told = labels(events).filter((kind) => !['message', 'membership.changed'].includes(kind));
    expect(told).toEqual([
      'baseline',
      'turn.started',
      'error',
      'compaction.progress started',
      'compaction.progress summarising',
      'compaction',
      'compaction.progress done',
      'baseline',
      'turn.done',
    ]);
    expect(only(events, 'error')).toMatchObject([
      { body: { code: 'context_overflow', message: expect.stringContaining(wire.refusal) } },
    ]);
    expect(inPhase(events, 'started')).toMatchObject([{ body: { reason: 'overflow' } }]);
    const adopts = only(events, 'baseline').at(-1)?.body.adopts;
    expect(adopts).toMatchObject({ compaction: 'compaction:1', reason: 'overflow' });
    expect(events.filter(({ kind, author }) => kind === 'message' && author.kind === 'agent')).toMatchObject([
      { body: { content: 'understood' } },
    ]);
  },
);

test('the receipt of the step is that of the accepted request', async () => {
  const [wire] = WIRES as [Wire];
  await using server = await wire.start(takes(7_000, wire.refusal));
  await using troupe = await roomOn(wire, server);
  await sayAll(troupe);
  await askAll(troupe, 'Where are the books?');
  const prompt = await troupe.promptOf('c:bo:1');
  expect(prompt.messages.at(-1)?.content).toBe(
    sentIn(server.requests[2] as FakeRequest).messages.at(-1)?.content,
  );
  expect(prompt).toMatchObject({
    verified: true,
    step: 1,
    tokens: { window: wire.window },
    cuts: [{ kind: 'adopt' }],
  });
});

test.each(WIRES)(
  'the next conversation knows the window that $name named, and is not refused',
  async (wire) => {
    await using server = await wire.start(takes(7_000, wire.refusal));
    await using troupe = await roomOn(wire, server);
    await sayAll(troupe);
    await askAll(troupe, 'Where are the books?');
    const before = server.requests.length;
    await sayAll(troupe, 'd');
    const events = await askAll(troupe, 'And here?', 'd');
    expect(only(events, 'error')).toEqual([]);
    expect(inPhase(events, 'started')).toMatchObject([{ body: { reason: 'over_budget' } }]);
    expect(only(events, 'turn.done')).toHaveLength(1);
    const sent = server.requests.slice(before).map(sentIn);
    expect(sent.map(({ isForSummary }) => isForSummary)).toEqual([true, false]);
    expect((await troupe.promptOf('d:bo:1')).tokens.window).toBe(wire.window);
  },
);

test.each(WIRES)(
  'a second refusal by $name ends the turn, and the next message is answered',
  async (wire) => {
    let refuses = true;
    await using server = await wire.start((request) => {
      if (sentIn(request).isForSummary) return { text: SUMMARY };
      return refuses
        ? { error: { code: 'context_overflow', message: wire.refusal } }
        : { text: 'understood', usage: null };
    });
    await using troupe = await roomOn(wire, server);
    await sayAll(troupe);
    const events = await askAll(troupe, 'Where are the books?');
    expect(server.requests.map((request) => sentIn(request).isForSummary)).toEqual([false, true, false]);
    expect(only(events, 'error')).toHaveLength(2);
    expect(only(events, 'compaction')).toHaveLength(1);
    expect(events.at(-1)).toMatchObject({ kind: 'turn.failed', body: { code: 'context_overflow' } });
    refuses = false;
    const later = await askAll(troupe, 'And now?');
    expect(later.at(-1)?.kind).toBe('turn.done');
    expect(server.requests.length).toBe(4);
  },
);

test.each(['Your input exceeds the context window of this model.', 'input is too long for requested model'])(
  'a refusal without a number is recovered from, too, and nothing is learnt permanently: %s',
  async (refusal) => {
    const [wire] = WIRES as [Wire];
    await using server = await wire.start(takes(7_000, refusal));
    await using troupe = await roomOn(wire, server);
    await sayAll(troupe);
    const events = await askAll(troupe, 'Where are the books?');
    const [refused, , again] = server.requests.map(sentIn);
    expect(server.requests).toHaveLength(3);
    expect(again?.tokens).toBeLessThan((refused?.tokens ?? 0) * 0.6);
    expect(events.at(-1)?.kind).toBe('turn.done');
    await askAll(troupe, 'In another room.', 'd');
    expect((await troupe.promptOf('d:bo:1')).tokens.window).toBe(128_000);
  },
);

test('the count of a provider is trusted, even at five times ours', async () => {
  const [wire] = WIRES as [Wire];
  const most = 7_192;
  await using server = await wire.start((request) => {
    const { tokens, isForSummary } = sentIn(request);
    if (isForSummary) return { text: SUMMARY };
    const message = `This model's maximum context length is 8192 tokens. However, your messages resulted in ${tokens * 5} tokens.`;
    if (tokens * 5 > most) return { error: { code: 'context_overflow', message } };
    return { text: 'understood', usage: null };
  });
  await using troupe = await roomOn(wire, server);
  for (const content of SAID.slice(0, 6)) await troupe.send('c', { author: UMA, content });
  const events = await askAll(troupe, 'Where are the books?');
  expect(sentIn(server.requests[0] as FakeRequest).tokens).toBeLessThan(most);
  // By that count so little room is left that no summary is requested.
  expect(server.requests.map((request) => sentIn(request).isForSummary)).toEqual([false, false]);
  expect(sentIn(server.requests[1] as FakeRequest).tokens * 5).toBeLessThan(most);
  expect(events.at(-1)?.kind).toBe('turn.done');
});

test('a refused request with nothing to leave out is not sent again', async () => {
  const [wire] = WIRES as [Wire];
  await using server = await wire.start(takes(50, wire.refusal));
  await using troupe = await roomOn(wire, server);
  const events = await askAll(troupe, 'Where are the books?');
  expect(server.requests).toHaveLength(1);
  expect(events.at(-1)).toMatchObject({
    kind: 'turn.failed',
    body: {
      code: 'context_overflow',
      message: expect.stringMatching(/8192 tokens.*largest messages: event 1 \(user\)/s),
    },
  });
});

test('a summary request that would itself exceed the named window is shortened before it is sent', async () => {
  const [wire] = WIRES as [Wire];
  await using server = await wire.start(takes(7_000, wire.refusal));
  await using troupe = await roomOn(wire, server);
  for (let n = 0; n < 5; n++) await sayAll(troupe);
  const events = await askAll(troupe, 'Where are the books?');
  const summaries = server.requests.map(sentIn).filter(({ isForSummary }) => isForSummary);
  expect(summaries).toHaveLength(1);
  expect(summaries[0]?.tokens).toBeLessThan(7_000);
  expect(inPhase(events, 'failed')).toEqual([]);
  expect(events.at(-1)?.kind).toBe('turn.done');
});

/** Refuses its first request, and answers all later ones. */
function refusesOnce(more: Parameters<typeof mind>[0] = {}) {
  let refused = false;
  return mind({
    ...more,
    turn: (request, signal) => {
      if (refused) return more.turn?.(request, signal) ?? says('understood');
      refused = true;
      return [
        { type: 'start' },
        { type: 'failed', error: { code: 'context_overflow', message: 'too many tokens' } },
      ];
    },
  });
}

async function killedWhen(model: TestModel, holds: () => boolean) {
  const driver = await openDriver();
  const first = mortal(driver);
  const stage = await openStage({ driver: first.driver, agents: [small('bo', model)] });
  await fill(stage, 9);
  await stage.say('c', 'Where are the books?', ['bo']);
  await until('the point to kill at', holds);
  first.kill();
  return driver;
}

test('after a crash behind the compaction the journal has it, and the same shorter request is sent', async () => {
  const dying = refusesOnce({
    async *turn() {
      await new Promise(() => undefined);
      yield { type: 'start' };
    },
  });
  const driver = await killedWhen(dying, () => dying.asked().length === 2);
  expect(dying.summaries()).toHaveLength(1);
  const next = mind();
  const stage = await openStage({ driver, agents: [small('bo', next)] });
  await stage.quiet();
  expect(next.summaries()).toEqual([]);
  expect(next.asked()).toHaveLength(1);
  expect(bytes(next.asked()[0])).toBe(bytes(dying.asked()[1]));
  expect(await of(stage, 'compaction')).toHaveLength(1);
  expect((await of(stage, 'baseline')).map(({ body }) => body.epoch)).toEqual([1, 2]);
  expect((await stage.events('c')).at(-1)?.kind).toBe('turn.done');
  expect(await stage.check('c')).toEqual([]);
});

test('a crash allows no second compaction: another refusal after it fails the turn', async () => {
  const dying = refusesOnce({
    async *turn() {
      await new Promise(() => undefined);
      yield { type: 'start' };
    },
  });
  const driver = await killedWhen(dying, () => dying.asked().length === 2);
  const next = refusesOnce();
  const stage = await openStage({ driver, agents: [small('bo', next)] });
  await stage.quiet();
  expect(next.requests).toHaveLength(1);
  expect((await stage.events('c')).at(-1)).toMatchObject({
    kind: 'turn.failed',
    body: { code: 'context_overflow' },
  });
  await ask(stage, 'And now?');
  expect((await stage.events('c')).at(-1)?.kind).toBe('turn.done');
  expect(await stage.check('c')).toEqual([]);
});

test('after a crash between the shared compaction and its adoption it is adopted, not requested again', async () => {
  const dying = refusesOnce();
  const driver = await openDriver();
  const first = mortal(driver);
  const isWritten = tapDriver(first.driver, (op, phase, [rows]) => {
    if (op !== 'append' || phase !== 'after') return;
    if ((rows as { id: string }[]).some(({ id }) => id === 'compaction:1')) first.kill();
  });
  const stage = await openStage({ driver: isWritten, agents: [small('bo', dying)] });
  await fill(stage, 9);
  await stage.say('c', 'Where are the books?', ['bo']);
  const key = { tenant: 'default', conversation: 'c', id: 'compaction:1' };
  await until('the summary is written', async () => (await driver.readEvent(key)) !== null);
  const next = refusesOnce();
  const again = await openStage({ driver, agents: [small('bo', next)] });
  await again.quiet();
  expect(next.summaries()).toEqual([]);
  expect(next.asked()).toHaveLength(2);
  expect(await of(again, 'compaction')).toHaveLength(1);
  expect((await again.events('c')).at(-1)?.kind).toBe('turn.done');
  expect(await again.check('c')).toEqual([]);
});

test('a refused prompt that no compaction can shorten fails its turn; both attempts to shorten it are logged', async () => {
  const bo = refusesOnce();
  const stage = await openStage({ agents: [small('bo', bo)] });
  // Above the trigger and below the limit, and all of it still needs an answer.
  await ask(stage, 'harbour '.repeat(2_800));
  expect(
    await kinds(stage, 'compaction.progress started', 'compaction.progress failed', 'error', 'turn.failed'),
  ).toEqual([
    'compaction.progress started',
    'compaction.progress failed',
    'error',
    'compaction.progress started',
    'compaction.progress failed',
    'turn.failed',
  ]);
  expect(bo.requests).toHaveLength(1);
  expect(stage.warnings).toEqual([]);
  await ask(stage, 'and now?');
  expect((await stage.events('c')).at(-1)?.kind).toBe('turn.done');
  expect(await stage.check('c')).toEqual([]);
});
