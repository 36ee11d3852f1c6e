import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { agentNamed, company, ROOM, UMA, VIK } from '../support/company.ts';
import { damageEvent } from '../support/mode.ts';

function scratch(): string {
  const data = mkdtempSync(path.join(tmpdir(), 'troupe-log-'));
  onTestFinished(() => rmSync(data, { recursive: true, force: true }));
  return data;
}

test('F1 the same id twice is one event', async () => {
  await using room = await company(['p']);
  const first = await room.post(UMA, 'p', 'hello', { id: 'e1' });
  const second = await room.post(UMA, 'p', 'hello', { id: 'e1' });
  await room.troupe.idle();
  expect([first, second]).toMatchObject([{ kind: 'appended' }, { kind: 'exists' }]);
  expect((await room.kinds()).filter((kind) => kind === 'message')).toHaveLength(2);
});

test('F1 the same id with another payload is refused and changes nothing', async () => {
  await using room = await company(['p']);
  await room.say(UMA, null, 'hello', { id: 'e1' });
  await expect(room.say(UMA, null, 'something else', { id: 'e1' })).rejects.toMatchObject({
    code: 'event_conflict',
  });
  expect(await room.kinds()).toEqual(['message']);
});

test('F2 our own reply, echoed after its commit, stays one event', async () => {
  await using room = await company(['p']);
  await room.say(UMA, 'p', 'hello');
  const { events } = await room.troupe.events(ROOM);
  const reply = events.find(({ author, kind }) => author.kind === 'agent' && kind === 'message');
  await room.say(agentNamed('p'), null, 'p answers 1', { id: reply?.id ?? '' }).catch(() => undefined);
  await room.say(UMA, 'p', 'again');
  expect(room.sent('p')).toEqual(['user: hello', 'assistant: p answers 1', 'user: again']);
});

test('F3 after a restart the views and all sent prompts are the same', async () => {
  const data = scratch();
  const agents = ['p', 'd'];
  await using model = await company(agents, { data });
  await model.say(UMA, 'p', 'plan it');
  await model.say(VIK, 'd', 'draw it');
  await model.say(UMA, 'p', 'go on');
  const next = await Promise.all(agents.map((agent) => model.troupe.prompt(ROOM, agent)));
  const sent = await model.troupe.promptOf(`${ROOM}:p:2`);
  await model.troupe.close();

  await using again = await company(agents, { data });
  expect(await Promise.all(agents.map((agent) => again.troupe.prompt(ROOM, agent)))).toEqual(next);
  expect(await again.troupe.promptOf(`${ROOM}:p:2`)).toEqual({ ...sent, verified: true });
});

test('F3 work queued at the end of the process is done after the restart', async () => {
  const data = scratch();
  await using resting = await company(['p'], { data, work: false });
  await resting.post(UMA, 'p', 'later');
  await resting.troupe.close();
  await using working = await company(['p'], { data });
  const replied = Promise.withResolvers<void>();
  working.troupe.watch((note) => {
    if (note.type === 'event' && note.event.kind === 'turn.done') replied.resolve();
  });
  if (!(await working.kinds()).includes('turn.done')) await replied.promise;
  expect(working.sent('p')).toEqual(['user: later']);
});

test('F4 concurrent writers get a dense order', async () => {
  await using room = await company(['p']);
  await Promise.all(Array.from({ length: 100 }, (_, n) => room.post(n % 2 ? UMA : VIK, null, `word ${n}`)));
  const { events } = await room.troupe.events(ROOM);
  expect(events.map(({ seq }) => seq)).toEqual(Array.from({ length: 100 }, (_, n) => n + 1));
});

test('F5 a log with one corrupt record shows the others and names the corrupt one', async () => {
  const data = scratch();
  await using before = await company(['p'], { data });
  await before.say(UMA, null, 'one', { id: 'e1' });
  await before.say(UMA, null, 'two', { id: 'e2' });
  await before.say(UMA, null, 'three', { id: 'e3' });
  await before.troupe.close();
  await damageEvent(data, { conversation: ROOM, id: 'e2' }, '{broken');

  await using after = await company(['p'], { data });
  await after.say(UMA, 'p', 'four');
  expect(after.sent('p')).toEqual(['user: one', 'user: three', 'user: four']);
  const { events } = await after.troupe.events(ROOM);
  expect(events[1]).toMatchObject({ seq: 2, kind: 'error', body: { code: 'store_corrupt' } });
  expect(JSON.stringify(events[1]?.body)).toContain('e2');
});

test('F6 a reply to an unknown parent is stored in its conversation, with the parent it names', async () => {
  await using room = await company(['p']);
  await room.say(UMA, 'p', 'about that', { replyTo: 'never-seen' });
  const { events } = await room.troupe.events(ROOM);
  expect(events[0]).toMatchObject({ kind: 'message', replyTo: 'never-seen' });
  expect(room.sent('p')).toEqual(['user: about that']);
});

test('N17 a reply without recipient is stored and wakes no agent; at the top level it goes to the default agent', async () => {
  await using room = await company(['p', 'd'], { fallback: 'd' });
  await room.say(UMA, null, 'at the top', { id: 'root' });
  expect(room.requests('d')).toHaveLength(1);
  await room.say(UMA, null, 'in the thread', { replyTo: 'root' });
  expect([room.requests('p').length, room.requests('d').length]).toEqual([0, 1]);
  await room.say(UMA, 'p', 'and you?');
  expect(room.sent('p')).toContain('user: in the thread');
});

test('N18 a message of 100 kB arrives intact', async () => {
  await using room = await company(['p']);
  const text = 'Größe 7 – {"a":[1,2]} 🎭 line\n'.repeat(3_500);
  await room.say(UMA, 'p', text);
  expect(Buffer.byteLength(text)).toBeGreaterThan(100_000);
  const [message] = room.raw('p');
  expect(message?.content?.startsWith(text)).toBe(true);
  expect(room.sent('p')).toHaveLength(1);
});
