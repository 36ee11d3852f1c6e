import { expect, test } from 'vitest';
import type { Author } from '../../src/events/index.ts';
import { agentNamed, company, UMA, VIK } from '../support/company.ts';

test('B1 a human speaking to all has no header for any agent', async () => {
  await using room = await company(['p', 'd']);
  await room.say(UMA, null, 'good morning');
  await room.say(UMA, 'p', 'you first');
  await room.say(UMA, 'd', 'now you');
  expect(room.sent('p')[0]).toBe('user: good morning');
  expect(room.sent('d')[0]).toBe('user: good morning');
});

test('B2 a human speaking to me, alone or with others, has no header', async () => {
  await using room = await company(['p', 'd']);
  await room.say(UMA, 'p', 'you');
  await room.say(UMA, ['d', 'p'], 'both');
  expect(room.sent('p')[0]).toBe('user: you');
  expect(room.sent('p').at(-1)).toBe('user: both');
});

test('B3 a human speaking to another agent is shown with the recipient', async () => {
  await using room = await company(['p', 'd']);
  await room.say(UMA, 'p', 'plan it');
  await room.say(UMA, 'd', 'draw it');
  expect(room.sent('d')[0]).toBe('user: [Uma>@p] plan it');
});

test('B4 two recipients other than me are both named', async () => {
  await using room = await company(['p', 'd', 'c']);
  await room.say(UMA, ['p', 'd'], 'plan and draw');
  await room.say(UMA, 'c', 'and you?');
  expect(room.sent('c')[0]).toBe('user: [Uma>@p, @d] plan and draw');
});

test('B5 a name in the text is no recipient, and an unknown recipient is refused', async () => {
  await using room = await company(['p', 'd']);
  await room.say(UMA, 'p', 'tell @d and @nobody');
  await expect(room.say(UMA, 'nobody', 'hello?')).rejects.toMatchObject({ code: 'agent_unknown' });
  await room.say(UMA, 'd', 'go');
  expect(room.sent('d')[0]).toBe('user: [Uma>@p] tell @d and @nobody');
});

test('B5 an agent addressed by its public key is named by its id', async () => {
  const pubkey = 'ab'.repeat(32);
  await using room = await company(['p', 'd'], { agents: { p: { pubkey } } });
  await room.say(UMA, pubkey, 'plan it');
  await room.say(UMA, 'd', 'go');
  expect(room.sent('d')[0]).toBe('user: [Uma>@p] plan it');
});

test('B6 own words are assistant and never prefixed, whoever the recipient is', async () => {
  await using room = await company(['p', 'd']);
  await room.say(UMA, 'p', 'plan it');
  await room.say(agentNamed('p'), 'd', 'please draw');
  await room.say(UMA, 'p', 'go on');
  expect(room.sent('p').filter((line) => line.startsWith('assistant'))).toEqual([
    'assistant: p answers 1',
    'assistant: please draw',
  ]);
});

test('B7 an agent speaking to me or to all is named, and to another with the recipient', async () => {
  await using room = await company(['p', 'd', 'c']);
  await room.say(agentNamed('p'), null, 'to all');
  await room.say(agentNamed('p'), 'd', 'to d');
  expect(room.sent('d')).toEqual(['user: [@p] «to all»', 'user: [@p] «to d»']);
  await room.say(UMA, 'c', 'and you?');
  expect(room.sent('c').slice(0, 2)).toEqual(['user: [@p] «to all»', 'user: [@p>@d] «to d»']);
});

test('B8 an unknown key is shown as a short id, never as a generic human', async () => {
  const key = '0123456789abcdef'.repeat(4);
  const stranger: Author = { kind: 'user', id: key, name: key };
  await using room = await company(['p', 'd']);
  await room.say(stranger, 'p', 'hello');
  await room.say({ kind: 'agent', id: key, name: key }, null, 'beep');
  await room.say(UMA, 'd', 'who was that?');
  expect(room.sent('d')).toEqual([
    'user: [01234567>@p] hello',
    'user: [@p] «p answers 1»',
    'user: [@01234567] «beep»',
    'user: [Uma] who was that?',
  ]);
});

test('B9 words from a bridge belong to their author', async () => {
  await using room = await company(['p']);
  await room.say({ kind: 'user', id: 'bridge', name: 'Vik' }, 'p', 'through the bridge');
  await room.say({ kind: 'system', id: 'bridge', name: 'Bridge' }, 'p', 'Vik has left');
  expect(room.sent('p').at(-1)).toBe('user: [system] «Vik has left»');
});

test('B10 several humans behind one bridge each have their own name', async () => {
  await using room = await company(['p']);
  await room.say({ kind: 'user', id: 'bridge', name: 'Uma' }, null, 'one');
  await room.say({ kind: 'user', id: 'bridge', name: 'Vik' }, 'p', 'two');
  expect(room.sent('p')).toEqual(['user: [Uma] one', 'user: [Vik] two']);
});

test('B10 two humans of one name are distinguished by their ids', async () => {
  await using room = await company(['p']);
  await room.say(UMA, null, 'one');
  await room.say({ ...UMA, id: 'u2' }, 'p', 'two');
  expect(room.sent('p')).toEqual(['user: [Uma (u1)] one', 'user: [Uma (u2)] two']);
});

test('B11 from the second human on new lines carry names, and sent ones stay unchanged', async () => {
  await using room = await company(['p']);
  await room.say(UMA, 'p', 'one');
  await room.say(VIK, 'p', 'two');
  await room.say(UMA, 'p', 'three');
  expect(room.sent('p')).toEqual([
    'user: one',
    'assistant: p answers 1',
    'user: [Vik] two',
    'assistant: p answers 2',
    'user: [Uma] three',
  ]);
});

test("B12 other agents' calls and results are not shown, and an event with nothing else disappears", async () => {
  await using room = await company(['p', 'd']);
  await room.transcript('d', [
    { role: 'user', content: 'look it up' },
    { role: 'assistant', content: null, tool_calls: [call('k1')] },
    result('k1', 'secret of k1'),
    { role: 'assistant', content: 'One moment.', tool_calls: [call('k2')] },
    result('k2', 'secret of k2'),
    { role: 'assistant', content: 'It is 7.' },
  ]);
  await room.say(UMA, 'p', 'well?');
  expect(room.sent('p').slice(0, -1)).toEqual([
    'user: [User] look it up',
    'user: [@d] «One moment.»',
    'user: [@d] «It is 7.»',
  ]);
});

test('B13 a message to myself comes back as user', async () => {
  await using room = await company(['p']);
  await room.say(agentNamed('p'), 'p', 'remember the milk');
  expect(room.sent('p')).toEqual(['user: [@p] «remember the milk»']);
});

test('K4 one event is user for one agent and assistant for another', async () => {
  await using room = await company(['p', 'd']);
  await room.say(UMA, 'p', 'plan it');
  await room.say(UMA, ['p', 'd'], 'go on');
  expect(room.sent('p')).toContain('assistant: p answers 1');
  expect(room.sent('d')).toContain('user: [@p] «p answers 1»');
});

function call(id: string) {
  return { id, type: 'function', function: { name: 'look', arguments: '{}' } };
}

function result(id: string, content: string) {
  return { role: 'tool', tool_call_id: id, content };
}
