import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Constants } from '../../src/library/runtime/open-engine.ts';
import type { TroupeInput } from '../../src/library/config/agents-file.ts';
import { type Clock, systemClock } from '../../src/base/clock.ts';
import type { AgentId, ConversationId, Event } from '../../src/events/index.ts';
import {
  fakeVector,
  startFakeOpenAi,
  type FakeReply,
  type FakeRequest,
} from '../../packages/testing/src/fake-vendors.ts';
import { chunksOf, ROOM, UMA } from '../support/company.ts';
import type { WireMessage } from '../support/compact.ts';
import { openTroupe } from '../support/mode.ts';

const TOPICS = [
  ['The harbour master is called Ines Carvalho.', 'The ferry needs a new rudder before spring.'],
  ['Our accountant keeps the ledgers in a red cabinet.', 'The cabinet key hangs behind the map.'],
  ['The zeppelin model was lent to the museum.', 'It comes back after the exhibition in October.'],
  ['Breakfast for the crew costs nine euros a head.', 'The baker delivers at five in the morning.'],
];
const PADDING = 'The wind was mild, the water calm, and nothing else worth a note had happened. ';

/** A long dialogue: each topic at its start, some days apart, followed by a long pause. */
const HISTORY = Array.from({ length: 40 }, (_, day) => {
  const topic = day % 3 === 2 ? TOPICS[(day - 2) / 3] : undefined;
  const [asked, answered] = topic ?? [`Day ${day} began.`, `Day ${day} ended.`];
  return [
    { role: 'user', content: `${asked} ${PADDING.repeat(2)}` },
    { role: 'assistant', content: `${answered} ${PADDING.repeat(2)}` },
  ];
}).flat();
const ROOM_ID = ROOM as ConversationId;
const HARBOUR_SEQ = 5;

const NOON = Date.UTC(2026, 0, 2, 12);
const CLOCK = { ...systemClock, now: () => NOON };
const EMBEDDER = { provider: 'openai-compatible', model: 'vectors' } as const;

interface Options {
  context?: TroupeInput['context'];
  embedding?: (request: FakeRequest) => FakeReply;
  data?: string;
  /** Context window of @q. */
  window?: number;
  /** Messages before the history. */
  before?: readonly object[];
  clock?: Clock;
  constants?: Constants;
}

/** @p, whose window is too small for the history, and @q, whose window is not. The vendor records its requests. */
async function room({
  context = {},
  embedding = () => ({}),
  data,
  window = 100_000,
  before = [],
  clock = CLOCK,
  constants = {},
}: Options = {}) {
  const vendor = await startFakeOpenAi((request) =>
    request.path === '/v1/embeddings' ? embedding(request) : { text: 'noted', usage: null },
  );
  const warnings: string[] = [];
  const troupe = await openTroupe(
    {
      agents: ['p', 'q'].map((id) => ({
        id,
        provider: 'openai-compatible',
        model: id,
        baseUrl: vendor.url,
        contextWindow: id === 'p' ? 5_000 : window,
        maxOutputTokens: 200,
      })),
      context: {
        summaries: 'extract',
        ...context,
        ...(context.embedder?.provider === 'openai-compatible' && {
          embedder: { ...context.embedder, baseUrl: vendor.url },
        }),
      },
    },
    {
      clock,
      constants: { ...constants, policy: { quoteTokens: 0, ...constants.policy } },
      ...(data !== undefined && { data }),
      onWarning: (error, where) => warnings.push(`${where}: ${(error as Error).message}`),
    },
  );
  onTestFinished(async () => {
    await troupe.close();
    await vendor.close();
  });
  const sentTo = (agent: string) =>
    vendor.requests
      .map(({ body }) => body as { model: string; messages?: WireMessage[] })
      .filter(({ model }) => model === agent);
  const ask = async (content: string, to = 'p') => {
    await troupe.send(ROOM, { author: UMA, to: [to], content });
    await troupe.idle();
  };
  return {
    troupe,
    warnings,
    vendor,
    ask,
    /** Imports the history and has the agent make room for its first answer. */
    compacted: async () => {
      const text = JSON.stringify({ messages: [...before, ...HISTORY] });
      await troupe.import(chunksOf(text), { agent: 'p', conversation: ROOM, format: 'openai' });
      await ask('good morning');
    },
    /** The last message sent to a model. */
    last: (agent = 'p') => sentTo(agent).at(-1)?.messages?.at(-1)?.content ?? '',
    turns: async (agent = 'p') => {
      const { events } = await troupe.events(ROOM, { limit: 1_000 });
      return events.filter(
        (event): event is Extract<Event, { kind: 'turn.started' }> =>
          event.kind === 'turn.started' && event.author.id === agent,
      );
    },
    prunes: async () => {
      const { events } = await troupe.events(ROOM, { limit: 1_000 });
      return events.flatMap((event) => (event.kind === 'prune' ? [event.body] : []));
    },
  };
}

function memoriesIn(message: string): string[] {
  const [, rest = ''] = message.split('\nmemories: ');
  return rest.split('\n').filter((line) => /^#\d+ /.test(line));
}

function seqOf(line: string): number {
  return Number(/^#(\d+)/.exec(line)?.[1]);
}

test('words from before the summary are retrieved by a question about them, with their number', async () => {
  const { compacted, ask, last, turns, troupe } = await room();
  await compacted();
  await ask('what is the name of the harbour master?');
  const memories = memoriesIn(last());
  expect(memories).toContainEqual(
    expect.stringMatching(/^#5 User \(2026-01-02\): The harbour master is called Ines Carvalho\./),
  );
  const seqs = memories.map(seqOf);
  expect((await turns()).at(-1)?.context?.memories).toEqual(seqs);
  expect(await troupe.promptOf(`${ROOM}:p:2`)).toMatchObject({ verified: true });
});

test('nothing is retrieved that the prompt shows anyway: newer words, quotes, or memories of earlier turns', async () => {
  const { compacted, ask, troupe } = await room();
  await compacted();
  const { cuts } = await troupe.promptOf(`${ROOM}:p:1`);
  const { events } = await troupe.events(ROOM, { limit: 1_000 });
  const quotes = events.flatMap((event) => (event.kind === 'compaction' ? event.body.quotes : []));
  const quoted = quotes.filter(({ cut }) => !cut).map(({ seq }) => seq);
  expect(quoted.length).toBeGreaterThan(0);
  const day = Math.floor((quoted.findLast((seq) => seq % 2 === 1) ?? 0) / 2);
  await ask(`who is the harbour master, and what happened on day ${day} and day 39?`);
  await ask(`again: who is the harbour master, and what happened on day ${day} and day 39?`);
  const { messages } = await troupe.promptOf(`${ROOM}:p:3`);
  const told = messages.flatMap(({ content }) => memoriesIn(content).map(seqOf));
  expect(told).toContain(HARBOUR_SEQ);
  expect(told).toEqual([...new Set(told)]);
  expect(Math.max(...told)).toBeLessThanOrEqual(cuts[0]?.upTo ?? 0);
  expect(told.filter((seq) => quoted.includes(seq))).toEqual([]);
});

test('without a summary nothing is retrieved', async () => {
  const { ask, last } = await room();
  await ask('The harbour master is called Ines Carvalho.');
  await ask('what is the name of the harbour master?');
  expect(last()).not.toContain('memories');
});

test('retrieval can be switched off, and adds nothing if it finds nothing', async () => {
  const off = await room({ context: { retrieval: false } });
  await off.compacted();
  await off.ask('what is the name of the harbour master?');
  expect(off.last()).not.toContain('memories');
  const on = await room();
  await on.compacted();
  await on.ask('xylophone?');
  expect(on.last()).not.toContain('memories');
});

test('an agent that still sees everything gets no memories, whatever others have summarised', async () => {
  const { compacted, ask, last } = await room();
  await compacted();
  await ask('what is the name of the harbour master?', 'q');
  await ask('what is the name of the harbour master?', 'p');
  expect(memoriesIn(last('p')).length).toBeGreaterThan(0);
  expect(memoriesIn(last('q'))).toEqual([]);
});

test("an agent retrieves its own calls and results, and never another's", async () => {
  const call = { id: 'c1', type: 'function', function: { name: 'open_ledger', arguments: '{"year":1987}' } };
  const { compacted, ask, last } = await room({
    window: 5_000,
    before: [
      { role: 'user', content: 'What is in the ledger?' },
      { role: 'assistant', content: '', tool_calls: [call] },
      { role: 'tool', tool_call_id: 'c1', content: `The ledger balance is 4711. ${PADDING.repeat(3)}` },
    ],
  });
  await compacted();
  await ask('good morning', 'q');
  for (const agent of ['p', 'q']) await ask('what is the ledger balance of 1987?', agent);
  expect(memoriesIn(last('p')).join()).toMatch(/#3 @p .*balance is 4711/);
  expect(memoriesIn(last('q')).length).toBeGreaterThan(0);
  expect(memoriesIn(last('q')).join()).not.toMatch(/4711|open_ledger/);
});

test('a preview shows the memories that the turn would have', async () => {
  const { compacted, troupe, turns } = await room();
  await compacted();
  const order = (command: 'pause' | 'resume') =>
    troupe.command({ command, conversation: ROOM_ID, agent: 'p' as AgentId }, UMA);
  await order('pause');
  await troupe.send(ROOM, { author: UMA, to: ['p'], content: 'where is the zeppelin?' });
  await troupe.idle();
  const previewed = memoriesIn((await troupe.prompt(ROOM, 'p')).messages.at(-1)?.content ?? '');
  expect(previewed.join()).toContain('zeppelin');
  expect(await turns()).toHaveLength(1);
  await order('resume');
  await troupe.idle();
  expect(memoriesIn(`\nmemories: ${(await turns()).at(-1)?.body.live['memories']}`)).toEqual(previewed);
});

test('a new process retrieves the same as one that has searched before', async () => {
  const asked = ['where does the key hang?', 'what does breakfast cost?'];
  const told: unknown[] = [];
  for (const isRestarted of [false, true]) {
    const data = await mkdtemp(path.join(tmpdir(), 'memories-'));
    onTestFinished(() => rm(data, { recursive: true, force: true }));
    const first = await room({ data });
    await first.compacted();
    await first.ask(asked[0] ?? '');
    if (isRestarted) await first.troupe.close();
    const second = isRestarted ? await room({ data }) : first;
    await second.ask(asked[1] ?? '');
    expect(await second.troupe.promptOf(`${ROOM}:p:3`)).toMatchObject({ verified: true });
    told.push((await second.turns()).map(({ body }) => body.live['memories']));
  }
  expect(told[1]).toEqual(told[0]);
  expect(told[0]).toEqual([undefined, expect.stringContaining('key'), expect.stringContaining('Breakfast')]);
});

test('memories of old turns are removed when room is needed, and are retrieved again by a later question', async () => {
  const { compacted, ask, troupe, prunes, turns } = await room({
    constants: { policy: { target: 0.3, targetAfterOverflow: 0.3, prune: { minGain: 100 } } },
  });
  await compacted();
  const questions = [
    'is the harbour master there?',
    'where is the key?',
    'where is the zeppelin?',
    'the baker?',
  ];
  for (let n = 0; (await prunes()).length === 0 && n < 20; n++)
    await ask(`${questions[n] ?? 'so'} ${'And again nothing. '.repeat(20)}`);
  const [prune] = await prunes();
  expect(prune?.events).toEqual([]);
  const all = await turns();
  const last = all.length;
  const old = all.slice(0, -2).filter(({ body }) => body.live['memories'] !== undefined);
  // Memories that a summary covers are gone anyway; the others are pruned all at once.
  const cleared = prune?.memories ?? [];
  expect(cleared.length).toBeGreaterThan(2);
  expect(cleared).toEqual(old.slice(-cleared.length).map(({ turn }) => turn));
  const { messages, tokens, verified } = await troupe.promptOf(`${ROOM}:p:${last}`);
  expect(verified).toBe(true);
  expect(messages.some(({ content }) => content.includes('Ines Carvalho'))).toBe(false);
  expect(tokens.total).toBe(prune?.tokens.after);
  expect(tokens.total).toBeLessThan((prune?.tokens.before ?? 0) - 100);
  await ask('is the harbour master there?');
  expect((await turns()).at(-1)?.body.live['memories']).toContain('Ines Carvalho');
});

describe('an embedder', () => {
  test('finds by meaning what shares no word with the question', async () => {
    // A model that maps every question to the harbour master.
    const means = (text: string) => (text.endsWith('?') ? (HISTORY[HARBOUR_SEQ - 1]?.content ?? '') : text);
    const { compacted, ask, last } = await room({
      context: { embedder: EMBEDDER },
      embedding: ({ body }) => ({ raw: { status: 200, headers: JSON_TYPE, body: vectors(body, means) } }),
    });
    await compacted();
    // Embedding runs in the background of the first turns.
    for (let tries = 0; tries < 20 && !last().includes('Ines Carvalho'); tries++)
      await ask('quis custodiet?');
    expect(memoriesIn(last()).join()).toContain('Ines Carvalho');
  });

  test.each<[string, boolean, (request: FakeRequest) => FakeReply]>([
    ['fails', false, () => ({ error: { code: 'provider_failed' } })],
    ['is not allowed', false, () => ({ error: { code: 'provider_auth' } })],
    ['never answers a question', true, (request) => (isQuestion(request) ? { hang: true } : {})],
  ])(
    'that %s costs no answer, one short wait per question at most, and one warning',
    async (_, isLate, embedding) => {
      // An unusual time, by which the clock's record shows the waits for a vector.
      const deadlineMs = 307;
      const waits: number[] = [];
      const sleep: Clock['sleep'] = (ms, signal) => (waits.push(ms), systemClock.sleep(ms, signal));
      const { compacted, ask, last, vendor, warnings } = await room({
        context: { embedder: EMBEDDER },
        constants: { memory: { deadlineMs, firstDeadlineMs: deadlineMs } },
        embedding,
        clock: { ...CLOCK, sleep },
      });
      await compacted();
      await ask('where does the key hang?');
      await vendor.arrived(3);
      for (const question of ['what is the name of the harbour master?', 'where is the zeppelin?'])
        await ask(question);
      const waited = waits.filter((ms) => ms === deadlineMs).length;
      expect(waited).toBeLessThanOrEqual(3);
      expect(waited > 0, 'only the deadline ends a request that hangs').toBe(isLate);
      expect(memoriesIn(last()).join()).toContain('zeppelin');
      const ofEmbedder = warnings.filter((warning) => warning.includes('embedder'));
      expect(ofEmbedder).toHaveLength(1);
    },
  );
});

const JSON_TYPE = { 'content-type': 'application/json' };

function vectors(body: unknown, means: (text: string) => string): string {
  const { input } = body as { input: string[] };
  const data = input.map((text, index) => ({ index, embedding: fakeVector(means(text)) }));
  return JSON.stringify({ object: 'list', data });
}

/** Questions are embedded alone, messages in batches. */
function isQuestion({ body }: FakeRequest): boolean {
  return (body as { input: string[] }).input.length === 1;
}
