import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { TroupeInput } from '../../src/agents-file.ts';
import { systemClock } from '../../src/clock.ts';
import type { Event, EventOf } from '../../src/events/index.ts';
import { startFakeOpenAi } from '../../src/testing/fake-openai.ts';
import type { FakeReply, FakeRequest } from '../../src/testing/fake-reply.ts';
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

/** A long dialogue: each topic at its beginning, some days apart, and then nothing happens for long. */
const HISTORY = Array.from({ length: 40 }, (_, day) => {
  const [asked, answered] = TOPICS[day % 4 === 0 ? day / 4 : -1] ?? [];
  return [
    { role: 'user', content: asked ?? `Day ${day} began. ${PADDING.repeat(2)}` },
    { role: 'assistant', content: answered ?? `Day ${day} ended. ${PADDING.repeat(2)}` },
  ];
}).flat();
const HARBOUR_SEQ = 1;

const NOON = Date.UTC(2026, 0, 2, 12);
const CLOCK = { ...systemClock, now: () => NOON };
const EMBEDDER = { provider: 'openai-compatible', model: 'vectors' } as const;

interface Options {
  context?: TroupeInput['context'];
  embedding?: (request: FakeRequest) => FakeReply;
  data?: string;
}

/** An agent whose window is too small for what was said, on a vendor that records what it is sent. */
async function room({ context = {}, embedding = () => ({}), data }: Options = {}) {
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
        contextWindow: 5_000,
        maxOutputTokens: 200,
      })),
      context: {
        summaries: 'extract',
        quoteTokens: 0,
        ...context,
        ...(context.embedder && { embedder: { ...context.embedder, baseUrl: vendor.url } }),
      },
    },
    {
      clock: CLOCK,
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
    /** Imports what was said and has the agent make room for its first answer. */
    async compacted() {
      const text = JSON.stringify({ messages: HISTORY });
      await troupe.import(chunksOf(text), { agent: 'p', conversation: ROOM, format: 'openai' });
      await ask('good morning');
    },
    /** The last message that a model was sent. */
    last: (agent = 'p') => sentTo(agent).at(-1)?.messages?.at(-1)?.content ?? '',
    async turns(agent = 'p') {
      const { events } = await troupe.events(ROOM, { limit: 1_000 });
      return events.filter(
        (event): event is Extract<Event, { kind: 'turn.started' }> =>
          event.kind === 'turn.started' && event.author.id === agent,
      );
    },
    async prunes() {
      const { events } = await troupe.events(ROOM, { limit: 1_000 });
      return events.flatMap((event) => (event.kind === 'prune' ? [event.body] : []));
    },
  };
}

function memoriesIn(message: string): string[] {
  const [, rest = ''] = message.split('\nmemories: ');
  return rest.split('\n').filter((line) => /^#\d+ /.test(line));
}

test('what was said before the summary is found again by a question about it, with its number', async () => {
  const { compacted, ask, last, turns, troupe } = await room();
  await compacted();
  await ask('what is the name of the harbour master?');
  const memories = memoriesIn(last());
  expect(memories).toContainEqual(
    expect.stringMatching(/^#1 User \(2026-01-02\): The harbour master is called Ines Carvalho\./),
  );
  const seqs = memories.map((line) => Number(/^#(\d+)/.exec(line)?.[1]));
  expect((await turns()).at(-1)?.context?.memories).toEqual(seqs);
  expect(await troupe.promptOf(`${ROOM}:p:2`)).toMatchObject({ verified: true });
});

test('nothing is found again that the prompt shows anyway: newer words, quotes, or memories of earlier turns', async () => {
  const { compacted, ask, last, troupe } = await room({ context: { retrieval: { tokens: 4_000 } } });
  await compacted();
  await ask('what happened on day 39, who is the harbour master?');
  await ask('and again: what happened on day 39, who is the harbour master?');
  await ask('breakfast for the crew');
  const { messages, cuts } = await troupe.promptOf(`${ROOM}:p:4`);
  const floor = Math.max(...cuts.map(({ upTo = 0 }) => upTo));
  const told = messages.flatMap(({ content }) =>
    memoriesIn(content).map((line) => Number(/^#(\d+)/.exec(line)?.[1])),
  );
  expect(told).toContain(HARBOUR_SEQ);
  expect(told).toEqual([...new Set(told)]);
  expect(Math.max(...told)).toBeLessThanOrEqual(floor);
  const quoted = [...(messages[1]?.content.matchAll(/^\[[^\]]*\] #(\d+)$/gm) ?? [])].map(([, seq]) => Number(seq));
  expect(quoted.length).toBeGreaterThan(0);
  expect(told.filter((seq) => quoted.includes(seq))).toEqual([]);
  expect(last()).toContain('nine euros');
});

test('without a summary there is nothing to find again', async () => {
  const { ask, last } = await room();
  await ask('The harbour master is called Ines Carvalho.');
  await ask('what is the name of the harbour master?');
  expect(last()).not.toContain('memories');
});

test('it can be switched off, and nothing is said where nothing is found', async () => {
  const off = await room({ context: { retrieval: { enabled: false } } });
  await off.compacted();
  await off.ask('what is the name of the harbour master?');
  expect(off.last()).not.toContain('memories');
  const on = await room();
  await on.compacted();
  await on.ask('xylophone?');
  expect(on.last()).not.toContain('memories');
});

test('an agent that has summarised nothing is told no memories of another that has', async () => {
  const { compacted, ask, last } = await room({ context: { trigger: 0.9 } });
  await compacted();
  await ask('what is the name of the harbour master?', 'q');
  await ask('what is the name of the harbour master?', 'p');
  expect(memoriesIn(last('p')).length).toBeGreaterThan(0);
  expect(memoriesIn(last('q'))).toEqual([]);
});

test('a preview shows the memories that the turn would have', async () => {
  const { compacted, troupe, turns } = await room();
  await compacted();
  await troupe.command({ type: 'pause', conversation: ROOM, agent: 'p' } as never, UMA);
  await troupe.send(ROOM, { author: UMA, to: ['p'], content: 'where is the zeppelin?' });
  await troupe.idle();
  const { messages } = await troupe.prompt(ROOM, 'p');
  const previewed = memoriesIn(messages.at(-1)?.content ?? '');
  expect(previewed.join()).toContain('zeppelin');
  await troupe.command({ type: 'resume', conversation: ROOM, agent: 'p' } as never, UMA);
  await troupe.idle();
  expect(memoriesIn((await turns()).at(-1)?.body.live['memories'] ?? '')).toEqual([]);
  expect(`\nmemories: ${(await turns()).at(-1)?.body.live['memories']}`.split('\n').slice(2)).toEqual(previewed);
});

test('a process that has just started finds the same as one that has searched before', async () => {
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

test('memories of old turns are taken out when room is needed, and are found again when they are asked for', async () => {
  const { compacted, ask, troupe, prunes, turns } = await room({
    context: { minGain: 100, retrieval: { tokens: 400 } },
  });
  await compacted();
  await ask('what is the name of the harbour master?');
  for (let n = 1; (await prunes()).length === 0 && n < 30; n++) await ask(`day ${n}? ${PADDING.repeat(2)}`);
  for (let t=1;t<=(await turns()).length;t++) { const q = await troupe.promptOf(`${ROOM}:p:${t}`); console.log(t, q.tokens.total, JSON.stringify(q.cuts), q.messages.at(-1)?.content.slice(0,1500)); }
  const [prune] = await prunes();
  expect(prune).toMatchObject({ events: [], memories: expect.arrayContaining([`${ROOM}:p:2`]) as unknown });
  const after = (await turns()).length;
  const { messages, tokens } = await troupe.promptOf(`${ROOM}:p:${after}`);
  expect(messages.some(({ content }) => content.includes('Ines Carvalho'))).toBe(false);
  const { after: planned = 0, before = 0 } = prune?.tokens ?? {};
  expect(planned).toBeLessThan(before - 100);
  expect(tokens.total).toBe(planned);
  await ask('what is the name of the harbour master?');
  expect((await turns()).at(-1)?.body.live['memories']).toContain('Ines Carvalho');
  expect(await troupe.promptOf(`${ROOM}:p:${after + 1}`)).toMatchObject({ verified: true });
});

describe('an embedder', () => {
  const slow = (request: FakeRequest) => isQuestion(request);

  test('finds by meaning what no word says', async () => {
    const { compacted, ask, last, vendor } = await room({ context: { embedder: EMBEDDER } });
    await compacted();
    await ask('where is the zeppelin?');
    expect(memoriesIn(last()).join()).toContain('zeppelin');
    await vendor.arrived(3);
    const batches = vendor.requests.filter(({ path: at }) => at === '/v1/embeddings');
    expect(batches.length).toBeGreaterThan(0);
  });

  test.each<[string, (request: FakeRequest) => FakeReply]>([
    ['fails', () => ({ error: { code: 'provider_failed' } })],
    ['is not allowed', () => ({ error: { code: 'provider_auth' } })],
    ['never answers a question', (request) => (slow(request) ? { hang: true } : {})],
  ])('that %s costs no answer, little time, and one warning', async (_, embedding) => {
    const { compacted, ask, last, vendor, warnings } = await room({
      context: { embedder: EMBEDDER },
      embedding,
    });
    await compacted();
    await ask('where does the key hang?');
    await vendor.arrived(3);
    for (const question of ['what is the name of the harbour master?', 'where is the zeppelin?']) {
      const begun = performance.now();
      await ask(question);
      expect(performance.now() - begun).toBeLessThan(2_000);
    }
    expect(memoriesIn(last()).join()).toContain('zeppelin');
    expect(warnings).toEqual([expect.stringContaining('embedder')]);
  });
});

/** Questions are embedded alone, what was said in batches. */
function isQuestion({ body }: FakeRequest): boolean {
  return (body as { input: string[] }).input.length === 1;
}
