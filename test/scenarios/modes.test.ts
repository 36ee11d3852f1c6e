import { expect, test } from 'vitest';
import type { Command } from '../../src/events/index.ts';
import { ROOM, UMA } from '../support/company.ts';
import { ROOM_ID, scripted, scriptedRoom, type ScriptedRoom } from './stage.ts';

type Mode = Extract<Command, { command: 'mode' }>['mode'];

function setMode(room: ScriptedRoom, mode: Mode, run?: string) {
  return room.troupe.command({ command: 'mode', conversation: ROOM_ID, mode, run }, UMA);
}

function direct(room: ScriptedRoom, status: 'active' | 'completed', brief?: string) {
  return room.troupe.command(
    { command: 'directive', conversation: ROOM_ID, run: 'r1', directive: 'ship it', brief, status },
    UMA,
  );
}

test('a mode is an event of its requester; the log continues and the banner names the mode', async () => {
  await using room = await scriptedRoom({ agents: [scripted('a')] });
  await room.say('a', 'one');
  const event = await setMode(room, 'chat');
  expect(event).toMatchObject({ kind: 'mode.changed', author: UMA, body: { mode: 'chat' }, to: [] });
  await room.say('a', 'two');
  await room.say('a', 'three');
  const banner = 'mode: chat: talk; your instructions are left out for now';
  expect(await room.reminders('a', 2)).toContain(banner);
  expect(await room.reminders('a', 3)).not.toContain(banner);
  const { messages } = await room.troupe.promptOf(`${ROOM}:a:3`);
  expect(messages.map(({ content }) => content).join('\n')).toContain('one');
  expect(await room.troupe.state(ROOM)).toMatchObject({ state: 'open.chat' });
});

test('chat leaves the persona out and agent mode brings it back, each as a baseline with its cause', async () => {
  await using room = await scriptedRoom({
    agents: [scripted('a', { instructions: 'Answer in verse.' }), scripted('plain')],
  });
  const turns: Mode[] = ['agent', 'chat', 'chat', 'run', 'agent'];
  await room.troupe.send(ROOM, { author: UMA, content: 'begin' });
  for (const mode of turns) {
    await setMode(room, mode);
    await room.say('a', mode);
    await room.say('plain', mode);
  }
  const versed = await Promise.all(
    turns.map(async (_, index) => (await room.system('a', index + 1)).includes('Answer in verse.')),
  );
  expect(versed).toEqual([true, false, false, true, true]);
  const reasons = (await room.events('baseline')).map(({ author, body }) => [author.id, body.reason]);
  expect(reasons).toEqual([
    ['a', 'first turn'],
    ['plain', 'first turn'],
    ['a', 'mode changed'],
    ['a', 'mode changed'],
  ]);
});

test('in run mode the prompt has directive and brief while the step is active, then only the directive', async () => {
  await using room = await scriptedRoom({ agents: [scripted('a')] });
  await room.say('a', 'zero');
  await direct(room, 'active', 'write the notes');
  await room.say('a', 'not in run mode yet');
  await setMode(room, 'run', 'r1');
  await room.say('a', 'one');
  await room.say('a', 'two');
  await direct(room, 'completed');
  await room.say('a', 'three');
  expect((await room.reminders('a', 2)).join('\n')).not.toContain('ship it');
  expect((await room.reminders('a', 3)).slice(-2)).toEqual(['run: r1: ship it', 'the step: write the notes']);
  expect((await room.reminders('a', 4)).join('\n')).not.toContain('ship it');
  expect((await room.reminders('a', 5)).at(-1)).toBe(
    'run: r1: ship it (the step is completed: answer what is asked about it, and do no more of it unless told to)',
  );
  expect((await room.events('turn.started')).map(({ context }) => [context?.mode, context?.run])).toEqual([
    [undefined, undefined],
    [undefined, undefined],
    ['run', 'r1'],
    ['run', 'r1'],
    ['run', 'r1'],
  ]);
  expect(await room.troupe.state(ROOM)).toMatchObject({
    state: 'open.run',
    run: { run: 'r1', directive: 'ship it', brief: '', status: 'completed' },
  });
});

test('a first message sets the mode that it is answered in, in one append', async () => {
  await using room = await scriptedRoom({
    agents: [scripted('a', { instructions: 'Answer in verse.' })],
  });
  const message = { id: 'm1', author: UMA, to: ['a'], content: 'one', mode: 'chat' as const };
  await room.troupe.send(ROOM, message);
  await room.troupe.idle();
  const { events } = await room.troupe.events(ROOM);
  expect(events.slice(0, 2)).toMatchObject([
    { kind: 'mode.changed', author: UMA, body: { mode: 'chat' } },
    { kind: 'message', body: { content: 'one' }, context: { mode: 'chat' } },
  ]);
  expect(await room.system('a', 1)).not.toContain('Answer in verse.');

  await room.troupe.command({ command: 'mode', conversation: ROOM_ID, mode: 'agent' }, UMA);
  expect(await room.troupe.send(ROOM, message)).toMatchObject({ kind: 'exists' });
  expect(await room.troupe.state(ROOM)).toMatchObject({ state: 'open.agent' });
  await expect(room.troupe.send(ROOM, { ...message, mode: 'run' })).rejects.toMatchObject({
    code: 'event_conflict',
  });
});

test('a later message sets the mode, and one that names none keeps it', async () => {
  await using room = await scriptedRoom({ agents: [scripted('a')] });
  await room.say('a', 'one');
  await direct(room, 'active', 'write the notes');
  await room.troupe.send(ROOM, { author: UMA, to: ['a'], content: 'two', mode: 'run' });
  await room.troupe.idle();
  await room.say('a', 'three');
  expect((await room.events('message')).filter(({ author }) => author.id === UMA.id)).toMatchObject([
    { body: { content: 'one' } },
    { context: { mode: 'run', run: 'r1' } },
    { context: { mode: 'run', run: 'r1' } },
  ]);
});

test('a mode comes with no message of somebody who may not set it, nor with one that no agent sees', async () => {
  await using room = await scriptedRoom({ agents: [scripted('a')], trust: { people: [UMA.id] } });
  const stranger = { kind: 'user', id: 'eve', name: 'Eve' } as const;
  const message = { to: ['a'], content: 'hi', mode: 'chat' as const };
  await expect(room.troupe.send(ROOM, { ...message, author: stranger })).rejects.toMatchObject({
    code: 'command_refused',
  });
  await expect(room.troupe.send(ROOM, { ...message, author: UMA, untrusted: true })).rejects.toMatchObject({
    code: 'command_refused',
  });
  await expect(
    room.troupe.send(ROOM, { author: UMA, content: 'hi', mode: 'chat', includeInContext: false }),
  ).rejects.toMatchObject({ code: 'event_invalid', data: { path: 'mode' } });
  await expect(room.troupe.events(ROOM)).rejects.toMatchObject({ code: 'conversation_unknown' });
});

test('an unknown conversation has no mode to change', async () => {
  await using room = await scriptedRoom({ agents: [scripted('a')] });
  await expect(setMode(room, 'chat')).rejects.toMatchObject({ code: 'conversation_unknown' });
  await expect(direct(room, 'active')).rejects.toMatchObject({ code: 'conversation_unknown' });
});
