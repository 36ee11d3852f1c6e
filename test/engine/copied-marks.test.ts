import { expect, test } from 'vitest';
import * as z from 'zod';
import type { ModelEvent } from '../../src/providers/provider.ts';
import type { Note } from '../../src/events/index.ts';
import type { ModelAnswer } from '../../src/actors/attempt/turn-run.ts';
import { NO_USAGE } from '../../src/events/index.ts';
import { defineTool } from '../../src/tools/tool.ts';
import { byStep, inOrder, says } from '../support/engine-models.ts';
import { allEvents, ANA, logOf, openStage, type Stage } from '../support/engine-stage.ts';
import { openTroupe } from '../support/mode.ts';

const COPIED = [
  '<summary-3fa9',
  '4c01>\nWe sell books.\n</summary-',
  '3fa94c01>\n[@b',
  'o] I be',
  'gin.\n#',
  ' Plan\n- one',
];
const WORDS = 'We sell books.\nI begin.\n# Plan\n- one';

async function answerOf(stage: Stage, key: string): Promise<ModelAnswer> {
  return JSON.parse((await stage.store.readJournal(logOf('c').tenant, key)) ?? '') as ModelAnswer;
}

test('an answer with copied marks is shown and stored without them, and the journal keeps the original', async () => {
  const model = inOrder(says(...COPIED), says('Fine.'));
  const stage = await openStage({ agents: [{ id: 'bo', model }] });
  const heard: string[] = [];
  stage.troupe.watch((note) => {
    if (note.type === 'text') heard.push(note.text);
  });
  await stage.say('c', 'What do we sell?', ['bo']);
  await stage.quiet();
  expect(heard.join('')).toBe(WORDS);
  expect(heard.length).toBeGreaterThan(2);
  const reply = (await stage.events('c')).find(
    ({ kind, author }) => kind === 'message' && author.kind === 'agent',
  );
  expect(reply?.body).toMatchObject({ content: WORDS });
  expect(await answerOf(stage, 'c:bo:1/0')).toMatchObject({ text: WORDS, original: COPIED.join('') });

  await stage.say('c', 'And then?', ['bo']);
  await stage.quiet();
  const own = model.requests[1]?.messages.find(({ role }) => role === 'assistant');
  expect(own?.content).toBe(WORDS);
  expect(await stage.store.readJournal(logOf('c').tenant, 'c:bo:2/0')).toBeNull();
});

test('words before a call are whole before it, and its arguments stay as they are', async () => {
  const args = JSON.stringify({ text: '[@bo #482193]\nI begin.' });
  const seen: unknown[] = [];
  const note = defineTool({
    name: 'note',
    description: '',
    schema: z.object({ text: z.string() }),
    run: ({ text }) => void seen.push(text),
  });
  const first: ModelEvent[] = [
    { type: 'start' },
    { type: 'text', delta: '[@bo #482193] [I' },
    { type: 'call', call: { id: 'k1', name: 'note', args } },
    { type: 'done', stop: 'calls', usage: NO_USAGE },
  ];
  const stage = await openStage({
    agents: [{ id: 'bo', model: byStep(first, says('Done.')), tools: ['note'] }],
    tools: [note],
  });
  const order: string[] = [];
  stage.troupe.watch((heard) => {
    if (heard.type === 'event' || heard.type === 'state') return;
    order.push(heard.type === 'text' ? heard.text : heard.type);
  });
  await stage.say('c', 'Note it.', ['bo']);
  await stage.quiet();
  expect(order.slice(0, 2)).toEqual(['[I', 'arguments']);
  expect(seen).toEqual(['[@bo #482193]\nI begin.']);
  const step = (await allEvents(stage.store, 'c')).find(({ kind }) => kind === 'step');
  expect(step?.body).toMatchObject({ content: '[I', calls: [{ args }] });
});

test('a reply that is data is read behind a copied mark, and what it holds stays', async () => {
  const reply = '[@bo #482193]\n"[@bo] one\\n[@bo #482193] two"';
  await using troupe = await openTroupe({
    agents: [{ id: 'bo', provider: 'scripted', script: { rules: [{ reply }] }, reply: z.string() }],
  });
  expect((await troupe.ask('c', 'Count.')).data).toBe('[@bo] one\n[@bo #482193] two');
});

test('what a reader of the stream has seen is the answer', async () => {
  await using troupe = await openTroupe({
    agents: [{ id: 'bo', provider: 'scripted', script: { rules: [{ reply: COPIED.join(''), chunk: 3 }] } }],
  });
  const parts: Note[] = [];
  const asked = troupe.stream('c', { author: ANA, content: 'What do we sell?' });
  let step = await asked.next();
  for (; step.done !== true; step = await asked.next()) parts.push(step.value);
  expect(parts.map((part) => (part.type === 'text' ? part.text : '')).join('')).toBe(WORDS);
  expect(step.value.text).toBe(WORDS);
});
