import { expect, test } from 'vitest';
import type { Event } from '../../src/events/index.ts';
import { ANA, scripted, startApi } from './harness.ts';

const PATH = '/api/conversations/c1/events';

/** Resolves when an agent is in the middle of its answer. */
function speaking(api: Awaited<ReturnType<typeof startApi>>): Promise<void> {
  return new Promise((resolve) => {
    const off = api.troupe.watch((note) => {
      if (note.type !== 'text') return;
      off();
      resolve();
    });
  });
}

const SLOW = scripted('slow', [
  { when: { contains: 'stop' }, reply: 'stopped' },
  { when: { contains: 'begin' }, reply: 'a very long answer', chunk: 2, chunkDelayMs: 60_000 },
  { reply: 'yes' },
]);

test('a message may interrupt a busy agent: the words so far are kept, and the message is answered', async () => {
  await using api = await startApi({ agents: [SLOW] });
  const begun = speaking(api);
  await api.post(PATH, { author: ANA, to: ['slow'], content: 'begin' });
  await begun;
  const sent = await api.post(PATH, { author: ANA, to: ['slow'], content: 'stop', whileBusy: 'interrupt' });
  expect(sent).toMatchObject({ status: 201, body: { event: { whileBusy: 'interrupt' } } });
  await api.troupe.idle();
  const { body } = await api.get(PATH);
  const events = body['events'] as unknown as Event[];
  expect(events.filter(({ kind }) => kind.startsWith('turn.') && kind !== 'turn.started')).toMatchObject([
    { kind: 'turn.aborted', body: { by: 'interrupted', partial: 'a ' } },
    { kind: 'turn.done' },
  ]);
  expect(events.at(-2)).toMatchObject({ kind: 'message', body: { content: 'stopped' } });
});

test('an agent that refuses messages while busy gives 409 with its name and stores nothing; a stored message gives 200', async () => {
  await using api = await startApi({ agents: [{ ...SLOW, whileBusy: 'reject' }] });
  const begun = speaking(api);
  const first = { id: 'm1', author: ANA, to: ['slow'], content: 'begin' };
  await api.post(PATH, first);
  await begun;
  expect(await api.post(PATH, { ...first, id: 'm2', content: 'and' })).toMatchObject({
    status: 409,
    body: { error: { code: 'agent_busy', data: { agent: 'slow', turn: 'c1:slow:1' } } },
  });
  // The turn itself may not be in the log yet.
  const { events } = (await api.get(PATH)).body as { events: { id: string }[] };
  expect(events.map(({ id }) => id)).not.toContain('m2');
  expect((await api.post(PATH, first)).status).toBe(200);
  const other = await api.post(PATH, { author: ANA, to: ['slow'], content: 'stop', whileBusy: 'interrupt' });
  expect(other.status).toBe(201);
  await api.troupe.idle();
});

test('an unknown policy is refused with its path', async () => {
  await using api = await startApi();
  const refused = await api.post(PATH, { author: ANA, content: 'x', whileBusy: 'hurry' });
  expect(refused).toMatchObject({
    status: 400,
    body: { error: { code: 'event_invalid', data: { path: 'whileBusy' } } },
  });
});
