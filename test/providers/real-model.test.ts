import { afterAll, beforeAll, expect } from 'vitest';
import * as z from 'zod';
import type { Event } from '../../src/events/index.ts';
import { createOpenAiEmbedder } from '../../src/providers/openai/client.ts';
import type { Note } from '../../src/events/index.ts';
import { type LlamaServer, startLlamaServer } from '../services/llama-server.ts';
import { eventsOf, LLAMA, openReal, wordsIn, withRealModel } from './real-model-stage.ts';

const WINDOW = 2_048;
const ANA = { kind: 'user', id: 'ana', name: 'Ana' } as const;

let server: LlamaServer | null = null;
beforeAll(async () => {
  if (LLAMA) server = await startLlamaServer(LLAMA, { contextTokens: WINDOW, slots: 2 });
});
afterAll(() => server?.[Symbol.asyncDispose]());

function urlOf(): string {
  if (!server) throw new Error('the server did not start');
  return server.url;
}

function lastOf<K extends Event['kind']>(events: readonly Event[], kind: K): Extract<Event, { kind: K }> {
  const found = events.findLast((event) => event.kind === kind);
  if (!found) throw new Error(`no ${kind} among ${events.map((event) => event.kind).join(', ')}`);
  return found as Extract<Event, { kind: K }>;
}

withRealModel('a real model’s words arrive in pieces, and the log has their sum', async () => {
  await using troupe = await openReal(urlOf());
  const parts: Note[] = [];
  const asked = troupe.stream('c', 'Tell me of the sea.');
  let step = await asked.next();
  for (; step.done !== true; step = await asked.next()) parts.push(step.value);
  const pieces = wordsIn(parts);
  expect(pieces.length).toBeGreaterThan(1);
  const events = await eventsOf(troupe, 'c');
  expect(lastOf(events, 'message').body.content).toBe(pieces.join(''));
  expect(step.value.text).toBe(pieces.join(''));
  const { usage } = lastOf(events, 'turn.done').body;
  expect(usage.input).toBeGreaterThan(100);
  expect(usage.output).toBeLessThanOrEqual(16);
});

withRealModel('a real model ends at maxOutputTokens, and at a stop sequence without it', async () => {
  await using short = await openReal(urlOf(), { maxOutputTokens: 4 });
  await short.ask('c', 'Tell me of the sea, at length.');
  expect(lastOf(await eventsOf(short, 'c'), 'turn.done').body).toMatchObject({
    cut: 'length',
    usage: { output: 4 },
  });
  // Every answer of several words has a blank.
  await using stopped = await openReal(urlOf(), { stop: [' '], maxOutputTokens: 64 });
  const { text } = await stopped.ask('c', 'Tell me of the sea, at length.');
  expect(text).not.toContain(' ');
  expect(lastOf(await eventsOf(stopped, 'c'), 'turn.done').body.cut).toBeUndefined();
});

withRealModel('a real model’s structured reply fits its schema', async () => {
  const reply = z.strictObject({ city: z.enum(['Bern', 'Basel']), isLarge: z.boolean() });
  await using troupe = await openReal(urlOf(), { reply, maxOutputTokens: 192 });
  const { data } = await troupe.ask('c', 'Which city has the bears, and is it large?');
  expect(reply.parse(data)).toEqual(data);
});

interface Slot {
  is_processing: boolean;
}

const MOST_ASKED = 20;

withRealModel('a turn cancelled in mid-stream ends the work of the real server', async () => {
  await using troupe = await openReal(urlOf(), { maxOutputTokens: 1_200 });
  const slots = async () => (await (await fetch(new URL('/slots', urlOf()))).json()) as readonly Slot[];
  const isWorking = async () => (await slots()).some((slot) => slot.is_processing);
  let parts: Note[] = [];
  let conversation = '';
  // A model may say little: then it has ended before it could be cancelled, and is asked again.
  for (let n = 1, isCancelled = false; !isCancelled; n += 1) {
    expect(n).toBeLessThan(MOST_ASKED);
    conversation = `c${n}`;
    parts = [];
    for await (const part of troupe.stream(conversation, `Count from ${n} to a thousand in words.`)) {
      parts.push(part);
      if (part.type !== 'text' || wordsIn(parts).length !== 2 || !(await isWorking())) continue;
      isCancelled = true;
      await troupe.command({ command: 'abort', turn: part.turn }, ANA);
    }
    isCancelled &&= (await eventsOf(troupe, conversation)).some(({ kind }) => kind === 'turn.aborted');
  }
  const aborted = lastOf(await eventsOf(troupe, conversation), 'turn.aborted');
  expect(aborted.body.partial.startsWith(wordsIn(parts).join(''))).toBe(true);
  await expect.poll(isWorking).toBe(false);
});

withRealModel('a prompt that the real server refuses as too long is compacted and answered', async () => {
  await using troupe = await openReal(urlOf(), { contextWindow: 32_768, maxOutputTokens: 8 });
  const filler = 'The harbour office keeps its books in the second drawer, where nobody looks for them. ';
  for (let n = 0; n < 12; n += 1) {
    const content = `Note ${n}: ${filler.repeat(14)}`;
    await troupe.send('c', { author: ANA, content, to: [] });
  }
  await troupe.ask('c', { content: 'Where are the books?', to: ['bo'] });
  const events = await eventsOf(troupe, 'c');
  expect(lastOf(events, 'compaction').body.reason).toBe('overflow');
  expect(events.filter(({ kind }) => kind === 'turn.failed')).toEqual([]);
  expect(lastOf(events, 'turn.done').body.usage.input).toBeLessThan(WINDOW);
});

withRealModel('a real server that was started without embeddings says so', async () => {
  const embedder = createOpenAiEmbedder({ baseUrl: urlOf(), apiKey: 'k', model: 'smollm2' });
  const refused = embedder.embed(['x'], { signal: new AbortController().signal });
  await expect(refused).rejects.toThrow('does not support embeddings');
});
