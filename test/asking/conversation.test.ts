import { expect, test } from 'vitest';
import { limitTroupe } from '../../src/http/limit-troupe.ts';
import { openTroupe } from '../support/mode.ts';

const BO = { id: 'bo', provider: 'scripted' as const, script: { rules: [{ reply: 'ok' }] } };
const ANA = { kind: 'user' as const, id: 'ana', name: 'Ana' };

test('a handle has the methods of one conversation, without its id', async () => {
  await using troupe = await openTroupe({ agents: [BO] });
  const room = troupe.conversation('room');
  const kinds: string[] = [];
  const stop = room.watch((note) => note.type === 'event' && kinds.push(note.event.kind));
  await troupe.ask('elsewhere', 'hi');
  expect(kinds).toEqual([]);
  expect((await room.ask('hi')).text).toBe('ok');
  await room.send({ author: ANA, to: ['bo'], content: 'again' });
  await room.idle();
  stop();
  expect(kinds.filter((kind) => kind === 'message')).toHaveLength(4);
  expect(await room.state()).toMatchObject({ id: 'room', state: 'open.agent' });
  expect((await room.events({ after: 1, limit: 2 })).events.map(({ seq }) => seq)).toEqual([2, 3]);
  expect((await room.actors()).map(({ agent }) => agent)).toEqual(['bo']);
});

test('a command of a handle is about its conversation, and one about a turn about that turn', async () => {
  await using troupe = await openTroupe({ agents: [BO] });
  const room = troupe.conversation('room');
  await room.ask('hi');
  expect(await room.command({ command: 'pause', agent: 'bo' }, ANA)).toMatchObject({
    conversation: 'room',
    body: { command: 'pause' },
  });
  await expect(room.command({ command: 'retry', turn: 'room:bo:9' }, ANA)).rejects.toMatchObject({
    code: 'turn_unknown',
  });
  const fork = await room.command({ command: 'fork', turn: undefined, seq: 1, as: 'hall' }, ANA);
  expect(fork).toMatchObject({ body: { fork: { conversation: 'hall', seq: 1 } } });
  for (const wrong of [null, undefined, 'retry'])
    await expect(async () => room.command(wrong as never, ANA)).rejects.toThrow(/^command: give an object/);
});

test('a handle of a narrowed troupe is as narrow', async () => {
  await using troupe = await openTroupe({ agents: [BO] });
  await troupe.ask('hidden', 'hi');
  const narrowed = limitTroupe(troupe, {
    id: 'key:x',
    tenant: troupe.tenant,
    scopes: ['read', 'write'],
    author: null,
    conversations: ['hall'],
  });
  expect((await narrowed.conversation('hall').ask('hi')).text).toBe('ok');
  const hidden = narrowed.conversation('hidden');
  for (const used of [hidden.state(), hidden.events(), hidden.send('hi'), hidden.idle()])
    await expect(used).rejects.toMatchObject({ code: 'conversation_unknown' });
});

test('a handle of an invalid id is refused', async () => {
  await using troupe = await openTroupe({ agents: [BO] });
  expect(() => troupe.conversation('no id')).toThrow(/^conversation: a conversation id is 1 to 128 of/);
});
