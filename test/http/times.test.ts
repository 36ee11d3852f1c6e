import { expect, test } from 'vitest';
import * as z from 'zod';
import { defineTool } from '../../src/index.ts';
import type { Event } from '../../src/events/index.ts';
import type { Projection } from '../../src/library/projection/model.ts';
import { MARK, type TimePage } from '../../src/library/projection/time-page.ts';
import { createStoryClock } from '../page/story-clock.ts';
import { ANA, scripted, startApi } from './harness.ts';

const WORKS_MS = 320;

async function played() {
  const story = createStoryClock();
  const clock = { ...story, monotonic: () => story.now() };
  const look = defineTool({
    name: 'look',
    description: 'Looks.',
    schema: z.object({}),
    run: () => {
      clock.pass(WORKS_MS);
      return 'seen';
    },
  });
  const agent = scripted('bo', [
    { when: { step: 1 }, reply: 'looking', calls: [{ name: 'look', args: {} }] },
    { reply: 'done' },
  ]);
  const api = await startApi({
    company: { agents: [{ ...agent, tools: ['look'] }], tools: [look] },
    troupe: { clock },
    clock,
  });
  const { event } = await api.troupe.send('c', { author: ANA, to: ['bo'], content: 'look!' });
  await api.troupe.idle();
  const { body } = await api.get('/api/conversations/c/events');
  return { api, asked: event, events: body['events'] as Event[] };
}

test('the log says when a tool ran, and the projection when its turn was queued, started and ended', async () => {
  const { api, asked, events } = await played();
  await using _ = api;
  const result = events.find(({ kind }) => kind === 'tool.result');
  expect(result).toMatchObject({ body: { ran: { ms: WORKS_MS, at: expect.any(Number) } } });
  const { body } = await api.get('/api/conversations/c/snapshot?events=2');
  expect(body['events']).toEqual(events.slice(-2));
  expect((await api.get('/api/conversations/c/snapshot')).body['events']).toBeUndefined();
  const [turn] = (body['projection'] as Projection).turns;
  expect(turn).toMatchObject({ queuedAt: asked.at, calls: [{ ran: { ms: WORKS_MS } }] });
  expect((turn?.endedAt ?? 0) - (turn?.startedAt ?? 0)).toBeGreaterThanOrEqual(WORKS_MS);
});

test('the times of a log come in columns, page by page', async () => {
  const { api, events } = await played();
  await using _ = api;
  const all = await api.get('/api/conversations/c/times?parts=true');
  const page = all.body['page'] as TimePage;
  expect(all.body).toMatchObject({ head: events.length, next: null });
  let at = page.at;
  expect(page.ms.map((ms) => (at += ms))).toEqual(events.map((event) => event.at));
  expect(page.what.filter((mark) => mark >= MARK.started)).toEqual([MARK.started, MARK.done]);
  expect(page).toMatchObject({ first: 1, agents: ['bo'], numbers: [1], tools: [{ name: 'look' }] });
  const part = await api.get('/api/conversations/c/times?after=2&limit=3');
  expect(part.body).toMatchObject({ next: 5, page: { first: 3, ms: { length: 3 }, times: [], tools: [] } });
});
