import { expect, test } from 'vitest';
import type { FakeRequest } from '../../packages/testing/src/fake-vendors.ts';
import { systemClock } from '../../src/base/clock.ts';
import { company, ROOM, UMA } from '../support/company.ts';

/** A model whose first answer waits until it is released. */
function gated() {
  const asked = Promise.withResolvers<FakeRequest>();
  const open = Promise.withResolvers<void>();
  let count = 0;
  const answer = async (request: FakeRequest) => {
    count += 1;
    const n = count;
    asked.resolve(request);
    if (n === 1) await open.promise;
    return { text: `answer ${n}` };
  };
  return { answer, asked: asked.promise, letGo: () => open.resolve() };
}

test('G1 two concurrent messages are covered by one turn, or by two in order, each once', async () => {
  await using room = await company(['p']);
  await Promise.all([room.post(UMA, 'p', 'one'), room.post(UMA, 'p', 'two')]);
  await room.troupe.idle();
  const { events } = await room.troupe.events(ROOM);
  const covers = events.flatMap((event) => (event.kind === 'turn.done' ? event.body.covers : []));
  const asked = events.filter(({ to }) => to.length > 0).map(({ seq }) => seq);
  expect(covers).toEqual(asked);
  const lines = room.sent('p').filter((line) => line.startsWith('user'));
  // Either may come first; the log has the order.
  const said = events.flatMap((event) =>
    event.kind === 'message' && event.author.kind === 'user' ? [`user: ${event.body.content}`] : [],
  );
  expect(lines).toEqual(said);
  expect(said.toSorted()).toEqual(['user: one', 'user: two']);
});

test('G1 several messages to an agent that has spoken before become one turn, the earlier ones marked', async () => {
  const { answer, asked, letGo } = gated();
  await using room = await company(['p'], { answers: { p: answer } });
  await room.post(UMA, 'p', 'zero');
  await asked;
  for (const text of ['one', 'two', 'three']) await room.post(UMA, 'p', text);
  letGo();
  await room.troupe.idle();
  expect(room.sent('p', 2)).toEqual([
    'user: zero',
    'assistant: answer 1',
    'user: (addressed to you earlier) one',
    'user: (addressed to you earlier) two',
    'user: three',
  ]);
  expect(room.requests('p')).toHaveLength(2);
});

test('G2 a message that arrives while the model streams is in the next prompt, once', async () => {
  const { answer, asked, letGo } = gated();
  await using room = await company(['p'], { answers: { p: answer } });
  await room.post(UMA, 'p', 'one');
  await asked;
  await room.post(UMA, 'p', 'two');
  letGo();
  await room.troupe.idle();
  expect(room.sent('p', 1)).toEqual(['user: one']);
  expect(room.sent('p', 2)).toEqual(['user: one', 'assistant: answer 1', 'user: two']);
});

test('G3 of the messages during a turn only those addressed to the agent are its task', async () => {
  const { answer, asked, letGo } = gated();
  await using room = await company(['p', 'd'], { answers: { p: answer } });
  await room.post(UMA, 'p', 'one');
  await asked;
  await room.post(UMA, null, 'to nobody');
  letGo();
  await room.troupe.idle();
  expect(room.requests('p')).toHaveLength(1);
  expect(room.requests('d')).toHaveLength(0);
  await room.say(UMA, 'p', 'two');
  expect(room.sent('p')).toEqual([
    'user: one',
    'assistant: answer 1',
    'user: away{[Uma] to nobody}',
    'user: two',
  ]);
});

test('G4 after an acknowledged stop there is no reply, and the next prompt says so once', async () => {
  const { answer, asked, letGo } = gated();
  await using room = await company(['p'], { answers: { p: answer } });
  await room.post(UMA, 'p', 'one');
  await asked;
  await room.troupe.command({ command: 'abort', turn: `${ROOM}:p:1` as never }, UMA);
  letGo();
  await room.troupe.idle();
  const kinds = await room.kinds();
  expect(kinds).toContain('turn.aborted');
  expect(kinds.filter((kind) => kind === 'message')).toHaveLength(1);
  await room.say(UMA, 'p', 'two');
  // Between them a reminder of the runtime, which `sent` leaves out.
  expect(room.sent('p')).toEqual(['user: one', 'user: ', 'user: two']);
  expect(JSON.stringify(room.raw('p')[1])).toContain('[interrupted]');
});

test('N11 two messages of one tick are both seen once, whatever the clock says', async () => {
  let now = 1_800_000_000_000;
  const clock = { ...systemClock, now: () => (now -= 60_000) };
  await using room = await company(['p'], { clock });
  await Promise.all([room.post(UMA, null, 'first'), room.post(UMA, 'p', 'second')]);
  await room.troupe.idle();
  await room.say(UMA, 'p', 'third');
  // Either may come first; the log has the order. An unaddressed one that comes after the turn is read with the next.
  const { events } = await room.troupe.events(ROOM);
  const said = events.flatMap((event) =>
    event.kind === 'message' && event.author.kind === 'user' ? [event.body.content] : [],
  );
  const read = room.sent('p').flatMap((line) => line.match(/first|second|third/g) ?? []);
  // What an agent is asked comes last in its prompt, after what the others said before its turn began.
  expect([said, ['first', 'second', 'third']]).toContainEqual(read);
  expect(said.toSorted()).toEqual(['first', 'second', 'third']);
});
