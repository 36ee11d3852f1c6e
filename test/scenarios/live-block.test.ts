import { expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { company, ROOM, UMA } from '../support/company.ts';
import { reminders } from '../support/compact.ts';

test('K1 a request has one live block per turn, at the end of the trigger', async () => {
  await using room = await company(['p', 'd']);
  await room.say(UMA, 'p', 'one');
  await room.say(UMA, 'd', 'aside');
  await room.say(UMA, 'p', 'two');
  const messages = room.raw('p');
  expect(messages.map((message) => reminders(message).length)).toEqual([1, 0, 0, expect.toBeOneOf([0, 1])]);
  expect(messages[0]?.content).toMatch(/^one\n\n\[reminder #(\d{6})\]\n[\s\S]*\n#\1$/);
});

test('K1 the live block is appended to the trigger and stays there for every step of the turn', async () => {
  await using room = await company(['p'], {
    agents: { p: { tools: ['handoff'] } },
    answers: { p: [{ calls: [{ name: 'handoff', args: '{"to":"nobody","goal":"x"}' }] }, 'then I do it'] },
  });
  await room.say(UMA, 'p', 'do it');
  const last = room.raw('p', 2);
  expect(last.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool']);
  expect(last.map((message) => reminders(message).length)).toEqual([1, 0, 0]);
});

test('K2 unchanged parts are not repeated, changed ones are', async () => {
  let now = Date.UTC(2026, 0, 1, 12, 0);
  await using room = await company(['p'], { clock: { ...systemClock, now: () => now } });
  await room.say(UMA, 'p', 'one');
  await room.say(UMA, 'p', 'two');
  now += 60_000;
  await room.say(UMA, 'p', 'three');
  const blocks = room
    .raw('p')
    .filter(({ role }) => role === 'user')
    .map(reminders);
  expect(blocks).toEqual([
    ['time: 2026-01-01 12:00; task: answer the last message; person: Uma'],
    [],
    ['time: 12:01'],
  ]);
});

test('K3 the messages of turn 1 are byte-identical in turns 2 and 3', async () => {
  await using room = await company(['p', 'd']);
  for (const text of ['one', 'two', 'three']) {
    await room.say(UMA, 'p', text);
    await room.say(UMA, 'd', `aside ${text}`);
  }
  const [first, second, third] = [1, 2, 3].map((n) => room.raw('p', n));
  expect(second?.slice(0, first?.length)).toEqual(first);
  expect(third?.slice(0, second?.length)).toEqual(second);
});

test('K5 visible events are not repeated in the block', async () => {
  await using room = await company(['p', 'd'], {
    agents: { p: { tools: ['handoff'] } },
    answers: { p: [{ calls: [{ name: 'handoff', args: '{"to":"d","goal":"count the sheep"}' }] }] },
  });
  await room.say(UMA, 'p', 'help');
  const text = room
    .raw('d')
    .map(({ content }) => content)
    .join('\n');
  expect(text.split('count the sheep')).toHaveLength(2);
  expect((await room.troupe.promptOf(`${ROOM}:d:1`)).verified).toBe(true);
});
