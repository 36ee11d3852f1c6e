import { describe, expect, test } from 'vitest';
import { createMemorySearch, type MemoryRequest } from '../../src/actors/features/memory/memory-search.ts';
import type { AgentId, ConversationId, Event } from '../../src/events/index.ts';
import type { Embedder } from '../../src/providers/embedder.ts';
import { TroupeError } from '../../src/base/errors.ts';
import { createFakeClock } from '../../packages/testing/src/fake-clock.ts';
import { createFakeEmbedder } from '../../packages/testing/src/fake-vendors.ts';
import { ADDRESS, called, dialogue, said } from './said.ts';

const LOG = dialogue(
  'The harbour opens at six.',
  'Bread and butter for breakfast.',
  'Our accountant is Ines.',
  'The red folder has the contracts.',
);

function stage(
  embedder: Embedder | null = null,
  over: { maxEvents?: number; deadlineMs?: number; firstDeadlineMs?: number } = {},
) {
  const clock = createFakeClock();
  const warnings: string[] = [];
  const memory = createMemorySearch({
    embedder,
    clock,
    onWarning: (error, where) => warnings.push(`${where}: ${(error as Error).message}`),
    ...over,
  });
  const search = async (query: string, request: Partial<MemoryRequest> = {}) => {
    const { signal } = new AbortController();
    const hits = await memory.search({ address: ADDRESS, events: LOG, query, limit: 3, signal, ...request });
    return hits.map(({ seq }) => seq);
  };
  /** Resolves when the background work has done what it can. */
  const settle = () => clock.advance(0);
  return { clock, warnings, memory, search, settle };
}

describe('without an embedder', () => {
  test('a message is found by its words', async () => {
    const { search } = stage();
    expect((await search('where are the contracts'))[0]).toBe(4);
  });

  test('the first search in a long log waits for its index', async () => {
    const { search, memory, clock } = stage();
    let pages = 0;
    async function* events(after: number) {
      pages += 1;
      yield LOG.filter(({ seq }) => seq > after);
    }
    const long = { events, upTo: 10_000 };
    const first = await Promise.all([search('where are the contracts', long), search('the harbour?', long)]);
    expect(first.map(([best]) => best)).toEqual([4, 1]);
    expect(pages).toBe(3);
    expect(clock.sleeping()).toBe(0);
    await memory[Symbol.asyncDispose]();
  });

  test('an index that takes longer than 100 ms is built behind the first search, for the next ones', async () => {
    const { search, clock, memory } = stage();
    const read = Promise.withResolvers<void>();
    async function* events(after: number) {
      await read.promise;
      yield LOG.filter(({ seq }) => seq > after);
    }
    const long = { events, upTo: 10_000 };
    const first = search('where are the contracts', long);
    await clock.advance(100);
    expect(await first).toEqual([]);
    read.resolve();
    await clock.advance(0);
    expect((await search('where are the contracts', long))[0]).toBe(4);
    await memory[Symbol.asyncDispose]();
  });

  test('a long log that cannot be read costs the memories and a warning, not the turn', async () => {
    const { search, memory, warnings } = stage();
    async function* events(): AsyncGenerator<Event[]> {
      yield await Promise.reject(new Error('the store is away'));
    }
    expect(await search('contracts', { events, upTo: 10_000 })).toEqual([]);
    expect(warnings).toEqual(['memory index: the store is away']);
    await memory[Symbol.asyncDispose]();
  });

  test('who asks nothing finds only what is close to the words', async () => {
    const { search } = stage();
    const talk = Array.from({ length: 60 }, (_, n) =>
      said(n + 1, `The wind on day ${n} was mild and the sea calm.`),
    );
    const events = [...talk, said(61, 'The staging database listens on port 5433 of kestrel.')];
    const told = { events, isAsked: false };
    expect(await search('Thanks, that looks good, go on', told)).toEqual([]);
    expect(await search('The wind is fine, and I am off to the bakery with Tom', told)).toEqual([]);
    const [best] = await search('Put the port of the staging database on kestrel into the config', told);
    expect(best).toBe(61);
  });

  test('a fact in the middle of a long message is found', async () => {
    const { search } = stage();
    const lines = (from: number) =>
      Array.from({ length: 400 }, (_, n) => `Line ${from + n} of the ledger has nothing to tell.`);
    const long = [...lines(0), 'The vault in Porto opens with the heron key.', ...lines(400)].join('\n');
    const events = [said(1, long), ...LOG.map((event) => ({ ...event, seq: event.seq + 1 }))];
    expect((await search('Which key opens the vault?', { events }))[0]).toBe(1);
  });

  test('the answer to an identical earlier question comes first', async () => {
    const { search } = stage();
    const events = [
      said(1, 'Which harbour do we sail from in May?'),
      said(2, 'Is it Lisbon or Porto?', { by: 'Ben' }),
      said(3, 'From Lisbon.', { by: 'Ben' }),
      said(4, 'The harbour in Porto is closed.'),
    ];
    expect(await search('Which harbour do we sail from in May?', { events })).toEqual([3, 1, 4]);
  });

  test('a late message, one of the same author, or a question is no answer', async () => {
    const { search } = stage();
    const events = [
      said(1, 'Which harbour do we sail from?'),
      said(2, 'I wonder.'),
      said(3, 'Who knows?', { by: 'Ben' }),
      said(4, 'From Lisbon.', { by: 'Ben', at: 86_400_000 }),
    ];
    expect((await search('Which harbour do we sail from?', { events }))[0]).toBe(1);
  });

  test('the log is read once, and then only its new events', async () => {
    const { search } = stage();
    const asked: number[] = [];
    const log = LOG.slice();
    async function* events(after: number): AsyncGenerator<Event[]> {
      asked.push(after);
      for (let start = after; start < log.length; start += 2) yield log.slice(start, start + 2);
    }
    expect((await search('contracts', { events }))[0]).toBe(4);
    log.push(said(5, 'The zeppelin landed.'));
    expect((await search('zeppelin', { events }))[0]).toBe(5);
    expect(asked).toEqual([0, 4]);
  });

  test('two concurrent searches index every event once', async () => {
    const { search } = stage();
    async function* events(after: number): AsyncGenerator<Event[]> {
      for (const event of LOG.slice(after)) {
        await Promise.resolve();
        yield [event];
      }
    }
    const alone = await stage().search('harbour breakfast', { events });
    const both = [search('harbour breakfast', { events }), search('harbour breakfast', { events })];
    expect(await Promise.all(both)).toEqual([alone, alone]);
  });

  test('an agent, a conversation and a tenant find no events of others', async () => {
    const { search } = stage();
    await search('contracts');
    const others = [
      { ...ADDRESS, agent: 'coder' as AgentId },
      { ...ADDRESS, conversation: 'd' as ConversationId },
      { ...ADDRESS, tenant: 'other' as typeof ADDRESS.tenant },
    ];
    for (const address of others) expect(await search('contracts', { address, events: [] })).toEqual([]);
  });

  test('the least recently searched index is dropped, and built again on demand', async () => {
    const { search } = stage(null, { maxEvents: 6 });
    const asked: string[] = [];
    const of = (conversation: string) => ({
      address: { ...ADDRESS, conversation: conversation as ConversationId },
      async *events(after: number) {
        asked.push(`${conversation} after ${after}`);
        yield LOG.slice(after);
      },
    });
    for (const conversation of ['a', 'b', 'b', 'a']) await search('contracts', of(conversation));
    expect(asked).toEqual(['a after 0', 'b after 0', 'b after 4', 'a after 0']);
  });
});

describe('with an embedder', () => {
  test('the first search waits for no vector; later ones find by meaning too', async () => {
    const embedder = createFakeEmbedder();
    // A model that matches every question with bread, which the words do not.
    const embed: Embedder['embed'] = (texts, options) =>
      embedder.embed(
        texts.map((text) => (text.endsWith('?') ? 'Bread and butter for breakfast.' : text)),
        options,
      );
    const { search, settle } = stage({ ...embedder, embed });
    expect(await search('What do we eat?')).toEqual([]);
    await settle();
    expect((await search('What do we eat?'))[0]).toBe(2);
  });

  test('every event is embedded once', async () => {
    const embedder = createFakeEmbedder();
    const { search, settle } = stage(embedder);
    for (const query of ['bread?', 'butter?', 'harbour?']) {
      await search(query);
      await settle();
    }
    expect(embedder.calls.filter((texts) => texts.length > 1)).toHaveLength(1);
    expect(embedder.calls.flat().filter((text) => text.startsWith('Bread'))).toHaveLength(1);
  });

  test("an agent's own calls are neither embedded nor found by others", async () => {
    const embedder = createFakeEmbedder();
    const { search, settle } = stage(embedder);
    const address = { ...ADDRESS, agent: 'coder' as AgentId };
    const log = [...LOG, ...called(5, 'coder', '{"path":"ledger.csv"}', 'balance 4711')];
    expect((await search('ledger 4711', { address, events: log })).length).toBeGreaterThan(0);
    await settle();
    expect(embedder.calls.flat().join()).not.toMatch(/ledger\.csv|4711/);
  });

  test('events of another agent are not found by meaning either', async () => {
    const { search, settle } = stage(createFakeEmbedder());
    await search('contracts', { address: { ...ADDRESS, agent: 'coder' as AgentId } });
    await settle();
    expect(await search('The red folder has the contracts.', { events: LOG.slice(0, 3) })).not.toContain(4);
  });

  test('the first search waits for a loading model, later ones no longer than the deadline', async () => {
    const waiting: (() => void)[] = [];
    const embedder = createFakeEmbedder((texts) =>
      texts.length === 1 ? new Promise<void>((resolve) => void waiting.push(resolve)) : undefined,
    );
    const { clock, warnings, search, settle } = stage(embedder);
    const empty = search('nothing is indexed yet');
    await settle();
    await empty;
    const first = search('The harbour opens at six.');
    await clock.advance(9_000);
    waiting.forEach((answer) => answer());
    expect((await first)[0]).toBe(1);
    expect(warnings).toEqual([]);
    const second = search('contracts');
    await clock.advance(300);
    expect((await second)[0]).toBe(4);
    expect(warnings).toEqual([expect.stringContaining('no vector within 300 ms')]);
  });

  test('a slow one costs the deadline and a warning once, and is not called for a minute', async () => {
    const embedder = createFakeEmbedder((texts) =>
      texts.length === 1 ? new Promise<void>(() => undefined) : undefined,
    );
    const { clock, warnings, search, settle } = stage(embedder, { firstDeadlineMs: 300 });
    await search('contracts');
    await settle();
    const slow = search('contracts');
    await clock.advance(299);
    expect(clock.sleeping()).toBe(1);
    await clock.advance(1);
    expect((await slow)[0]).toBe(4);
    expect(await search('contracts')).toEqual(await slow);
    expect(warnings).toHaveLength(1);

    await clock.advance(60_000);
    const asked = embedder.calls.length;
    const again = search('contracts');
    await clock.advance(300);
    await again;
    expect(embedder.calls.length).toBe(asked + 1);
    expect(warnings).toHaveLength(1);
  });

  test('one that fails causes one warning per series of failures, and is tried again after a minute', async () => {
    let isDown = true;
    const embedder = createFakeEmbedder(() => {
      if (isDown) throw new TroupeError('provider_overloaded', 'too busy');
    });
    const { clock, warnings, search, settle } = stage(embedder);
    const round = async () => {
      expect((await search('contracts'))[0]).toBe(4);
      await settle();
    };
    await round();
    await round();
    expect([embedder.calls.length, warnings.length]).toEqual([1, 1]);
    await clock.advance(60_000);
    await round();
    expect([embedder.calls.length, warnings.length]).toEqual([2, 1]);

    isDown = false;
    await clock.advance(60_000);
    await round();
    await round();
    isDown = true;
    await round();
    expect(warnings).toHaveLength(2);
    expect(warnings[0]).toMatch(/too busy/);
  });

  test('refused texts are not sent again', async () => {
    const embedder = createFakeEmbedder((texts) => {
      if (texts.length > 1) throw new TroupeError('provider_invalid_request', 'bad input');
    });
    const { clock, search, settle } = stage(embedder);
    for (let round = 0; round < 3; round += 1) {
      await search('contracts');
      await settle();
      await clock.advance(60_000);
    }
    expect(embedder.calls).toHaveLength(1);
  });

  test('an aborted turn stops waiting and counts as no failure', async () => {
    const embedder = createFakeEmbedder((texts) =>
      texts.length === 1 ? new Promise<void>(() => undefined) : undefined,
    );
    const { warnings, search, settle } = stage(embedder);
    await search('contracts');
    await settle();
    const controller = new AbortController();
    const slow = search('contracts', { signal: controller.signal });
    await settle();
    controller.abort();
    expect((await slow)[0]).toBe(4);
    expect(warnings).toEqual([]);
  });

  test('closing ends the background work', async () => {
    const seen = Promise.withResolvers<AbortSignal>();
    const embedder = createFakeEmbedder((_, signal) => {
      seen.resolve(signal);
      return new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(new TroupeError('aborted', 'aborted')));
      });
    });
    const { memory, warnings, search } = stage(embedder);
    await search('contracts');
    const signal = await seen.promise;
    await memory[Symbol.asyncDispose]();
    expect(signal.aborted).toBe(true);
    expect(warnings).toEqual([]);
  });
});
