import { expect, test } from 'vitest';
import { DESK, heldReply, openStage } from '../../doors/test/stage.ts';
import { createTroupeClient, type Event, type StreamFrame } from '../src/index.ts';

const desk = () => openStage(['desk', 'billing'], DESK);

test('an answer has the words, its authors and what it waits for; a repeated message is the same one', async () => {
  await using stage = await desk();
  const troupe = createTroupeClient({ url: stage.url });
  const message = { id: 'm1', to: ['desk'], content: 'Refund order 4.' };
  const asked = await troupe.ask('c1', message);
  expect(asked).toMatchObject({ outcome: 'waiting', failures: [] });
  expect(asked.waits.map(({ task }) => [task.kind, task.tool, task.args])).toEqual([
    ['approval', 'refund', '{"order":4}'],
  ]);
  expect(await troupe.ask('c1', message)).toEqual(asked);
  const said = await troupe.ask('c1', { to: ['desk'], content: 'Thanks.' });
  expect(said).toMatchObject({ text: 'desk answers 2', outcome: 'answered' });
  expect(said.replies.map(({ author }) => author.name)).toEqual(['Desk']);
});

test('a stream tells the words of two agents apart, and returns the answer', async () => {
  await using stage = await desk();
  const troupe = createTroupeClient({ url: stage.url });
  const parts = troupe.stream('c1', { to: ['desk'], content: 'Refund order 4.' });
  const said: Record<string, string> = {};
  const kinds: string[] = [];
  let next = await parts.next();
  for (; !next.done; next = await parts.next()) {
    const { value } = next;
    if (value.type === 'text') said[value.agent] = (said[value.agent] ?? '') + value.text;
    if (value.type === 'void') said[value.agent] = '';
    if (value.type === 'event') kinds.push(value.event.kind);
  }
  expect(said).toEqual({ desk: 'One moment.', billing: 'I refund it.' });
  expect(kinds).toContain('approval.requested');
  expect(next.value.outcome).toBe('waiting');
});

test('an approval that one client decides is gone for the other, and is decided once', async () => {
  await using stage = await desk();
  const [one, other] = [createTroupeClient({ url: stage.url }), createTroupeClient({ url: stage.url })];
  await one.ask('c1', { to: ['desk'], content: 'Refund order 4.' });
  const [task] = await other.tasks('c1', { open: true });
  if (!task) throw new Error('nothing waits');
  await expect(
    one.decide('c1', { id: task.id, argsHash: 'other' }, { approved: true }),
  ).rejects.toMatchObject({ name: 'TroupeError', policy: 'fix_input' });
  const author = { kind: 'user', id: 'ana', name: 'Ana' } as const;
  await one.decide('c1', task, { approved: true }, { author });
  expect(await other.tasks('c1', { open: true })).toEqual([]);
  await expect(other.decide('c1', task, { approved: false })).rejects.toMatchObject({ policy: 'fix_input' });
  await stage.troupe.idle();
  const { events } = await stage.troupe.events('c1');
  const decisions = events.filter(({ kind }) => kind === 'approval.decided');
  expect(decisions.map((event) => event.author)).toEqual([author]);
  expect(JSON.stringify(events).match(/Your money is back\./g)).toHaveLength(1);
});

test('an aborted wait is the error aborted, and the agent goes on', async () => {
  const held = heldReply('Here I am.');
  await using stage = await openStage(['bo'], {
    answers: {
      bo: held.answer,
    },
  });
  const troupe = createTroupeClient({ url: stage.url });
  const left = new AbortController();
  const answer = troupe.ask('c1', { to: ['bo'], content: 'Hello' }, { signal: left.signal });
  const refused = expect(answer).rejects.toMatchObject({ code: 'aborted', policy: 'stop' });
  await held.asked;
  left.abort();
  await refused;
  held.release();
  await stage.troupe.idle();
  expect(JSON.stringify((await stage.troupe.events('c1')).events)).toContain('Here I am.');
});

test('a turn that is stopped is named in the answer', async () => {
  const held = heldReply('Too late.');
  await using stage = await openStage(['bo'], {
    answers: {
      bo: held.answer,
    },
  });
  const troupe = createTroupeClient({ url: stage.url });
  const answer = troupe.ask('c1', { to: ['bo'], content: 'Hello' });
  await held.asked;
  await troupe.abort('c1:bo:1');
  expect(await answer).toMatchObject({ outcome: 'failed', failures: [{ agent: 'bo', code: 'aborted' }] });
  held.release();
});

test('a conversation may be followed from its newest events on, also before it begins', async () => {
  await using stage = await desk();
  const troupe = createTroupeClient({ url: stage.url });
  const over = new AbortController();
  const frames = troupe.follow('c1', { newest: 2, signal: over.signal });
  const first = nextEvent(frames);
  for (const content of ['one', 'two', 'three']) await troupe.send('c1', { to: [], content });
  expect((await first).seq).toBe(1);
  const later = troupe.follow('c1', { newest: 2, signal: over.signal });
  expect((await nextEvent(later)).seq).toBe(2);
  expect((await nextEvent(later)).seq).toBe(3);
  over.abort();
});

async function nextEvent(frames: AsyncGenerator<StreamFrame, void>): Promise<Event> {
  for (;;) {
    const { value, done } = await frames.next();
    if (done) throw new Error('the stream is over');
    if (value.type === 'event') return value.event;
  }
}
