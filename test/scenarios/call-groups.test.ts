import { expect, test } from 'vitest';
import * as z from 'zod';
import type { EventDraft } from '../../src/events/index.ts';
import { defineTool } from '../../src/tools/tool.ts';
import { chunksOf, company, ROOM, USER, type Company } from '../support/company.ts';

/** The agent's own transcript as it was sent, without the trigger after it. */
async function recall(messages: readonly unknown[]): Promise<string[]> {
  await using room = await company(['p']);
  await room.transcript('p', messages);
  await room.say(USER, 'p', 'go on');
  const lines = room.sent('p');
  expect(lines.at(-1)).toBe('user: go on');
  return lines.slice(0, -1);
}

const asks = (...ids: string[]) => ({
  role: 'assistant',
  content: null,
  tool_calls: ids.map((id) => ({ id, type: 'function', function: { name: 'look', arguments: '{}' } })),
});
const result = (id: string) => ({ role: 'tool', tool_call_id: id, content: `seen ${id}` });
const user = (content: string) => ({ role: 'user', content });
const done = { role: 'assistant', content: 'done' };

test('C1 a message between a call and its result comes after the result', async () => {
  expect(await recall([user('look'), asks('k1'), user('hurry'), result('k1'), done])).toEqual([
    'user: look',
    'assistant: look#k1',
    'tool #k1: seen k1',
    'user: hurry',
    'assistant: done',
  ]);
});

test('C2 two messages between a call and its result come after it in their order', async () => {
  expect(await recall([user('look'), asks('k1'), user('one'), user('two'), result('k1'), done])).toEqual([
    'user: look',
    'assistant: look#k1',
    'tool #k1: seen k1',
    'user: one',
    'user: two',
    'assistant: done',
  ]);
});

test('C3 a message within the first of two groups stands between the groups', async () => {
  const log = [user('look'), asks('k1'), user('hm'), result('k1'), asks('k2'), result('k2'), done];
  expect(await recall(log)).toEqual([
    'user: look',
    'assistant: look#k1',
    'tool #k1: seen k1',
    'user: hm',
    'assistant: look#k2',
    'tool #k2: seen k2',
    'assistant: done',
  ]);
});

test('C4 of parallel calls only those without a result get a synthetic one, within their group', async () => {
  const log = [user('look'), asks('k1', 'k2', 'k3'), result('k2'), user('and?'), done];
  expect(await recall(log)).toEqual([
    'user: look',
    'assistant: look#k1 look#k2 look#k3',
    'tool #k2: seen k2',
    'tool #k1: (interrupted)',
    'tool #k3: (interrupted)',
    'user: and?',
    'assistant: done',
  ]);
});

test('C5 a call at the end of a crashed turn gets a result that says interrupted', async () => {
  const lines = await recall([user('look'), asks('k1')]);
  expect(lines).toEqual(['user: look', 'assistant: look#k1', 'tool #k1: (interrupted)']);
});

test('C6 an unrequested result is dropped', async () => {
  const lines = await recall([user('look'), result('k9'), asks('k1'), result('k1'), result('k1'), done]);
  expect(lines).toEqual(['user: look', 'assistant: look#k1', 'tool #k1: seen k1', 'assistant: done']);
});

test('C7 a call that may still be running gets such a result, and its late result is a new item, not an edit', async () => {
  await using room = await company(['p']);
  await room.transcript('p', [user('look'), asks('k1')]);
  await room.say(USER, 'p', 'go on');
  const synthetic = room.raw('p').find(({ role }) => role === 'tool')?.content;
  expect(synthetic).toMatch(/still running/);
  expect(synthetic).toMatch(/do not repeat/);
  const before = room.raw('p');
  await late(room, 'k1', 'seen at last');
  await room.say(USER, 'p', 'and now?');
  expect(room.raw('p').slice(0, before.length)).toEqual(before);
  expect(room.sent('p').slice(before.length)).toEqual([
    'assistant: p answers 1',
    'user: away{[late result of look] seen at last}',
    'user: and now?',
  ]);
});

test('C8 a reused call id is sent once, with its result', async () => {
  const log = [user('look'), asks('k1'), result('k1'), asks('k1'), result('k1'), done];
  expect(await recall(log)).toEqual([
    'user: look',
    'assistant: look#k1',
    'tool #k1: seen k1',
    'assistant: look#k1-2',
    'tool #k1-2: seen k1',
    'assistant: done',
  ]);
});

test('C8 each step of a turn keeps its own calls', async () => {
  const look = defineTool({
    name: 'look',
    description: 'Looks.',
    schema: z.object({ at: z.string() }),
    run: ({ at }) => `seen ${at}`,
  });
  const asking = (...ats: string[]) => ({
    calls: ats.map((at) => ({ name: 'look', args: `{"at":"${at}"}`, id: at })),
  });
  await using room = await company(['p'], {
    tools: [look],
    agents: { p: { tools: ['look'] } },
    answers: { p: [asking('a', 'b'), asking('a'), 'seen it all'] },
  });
  await room.say(USER, 'p', 'look');
  expect(room.sent('p', 3)).toEqual([
    'user: look',
    'assistant: look#a look#b',
    'tool #a: seen a',
    'tool #b: seen b',
    'assistant: look#a-2',
    'tool #a-2: seen a',
  ]);
  const first = room.raw('p', 1);
  expect(room.raw('p', 2).slice(0, first.length)).toEqual(first);
});

test('C9 a request never ends in assistant and has system only at the front', async () => {
  await using room = await company(['p']);
  await room.transcript('p', [{ role: 'system', content: 'be kind' }, user('look'), done, done]);
  await room.say(USER, 'p', 'go on');
  const [messages] = room
    .requests('p')
    .map(({ body }) => (body as { messages: { role: string }[] }).messages);
  const roles = messages?.map(({ role }) => role);
  expect(roles).toEqual(['system', 'user', 'user', 'assistant', 'assistant', 'user']);
});

test("C9 a conversation that begins with the agent's own words gets a user line first", async () => {
  expect(await recall([done])).toEqual(['user: [the conversation begins]', 'assistant: done']);
});

/** A result after its call was given up: the log's own export with one more line. */
async function late(room: Company, call: string, content: string): Promise<void> {
  const draft: Record<string, unknown> = {
    id: 'late-1',
    author: { kind: 'agent', id: 'p', name: 'p' },
    to: [],
    kind: 'tool.result',
    body: { call, name: 'look', outcome: 'done', content },
  } satisfies Record<keyof Pick<EventDraft, 'id' | 'author' | 'to' | 'kind' | 'body'>, unknown>;
  let longer = '';
  for await (const line of room.troupe.export(ROOM)) longer += `${line.trim()}\n`;
  longer += JSON.stringify(draft);
  await room.troupe.import(chunksOf(longer), { format: 'troupe', conversation: ROOM });
}
