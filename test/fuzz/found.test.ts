import { expect, test } from 'vitest';
import { EventDraft, MAX_DATA_DEPTH, tryParse } from '../../src/events/index.ts';
import { collect, jsonl, keyValueOf } from '../import/collect.ts';
import { ANA, startApi } from '../http/harness.ts';

/** Each finding of the fuzzers, on its own. */

const HOSTILE = { length: { toString: 1, valueOf: 1 } };
const said = { id: 'e1', kind: 'message', author: ANA, to: [], body: { content: 'hello' } };

test('an object with a length that is not a number is refused instead of a text or list', async () => {
  await using api = await startApi();
  for (const body of [
    { author: ANA, content: 'hi', to: [HOSTILE] },
    { author: { ...ANA, id: HOSTILE }, content: 'hi' },
    { author: ANA, content: 'hi', to: HOSTILE },
  ]) {
    expect(await api.post('/api/conversations/c1/events', body)).toMatchObject({
      status: 400,
      body: { error: { code: 'event_invalid' } },
    });
  }
  expect(api.errors).toEqual([]);
  const { drafts, report } = await collect(
    jsonl({ troupe: 1 }, said, { ...said, id: 'e2', author: { ...ANA, name: HOSTILE } }),
  );
  expect(drafts).toHaveLength(1);
  expect(keyValueOf(report.skipped)).toEqual({ invalid_event: 1 });
});

test('a door of a package refuses such an object, too', async () => {
  await using api = await startApi();
  for (const message of [
    { id: HOSTILE, role: 'user', parts: [] },
    { id: 'm1', role: 'user', parts: HOSTILE },
    { id: 'm1', role: 'user', parts: [{ type: 'data-answer', data: { question: HOSTILE } }] },
  ]) {
    const answer = await api.post('/api/conversations/c1/chat', { messages: [message] });
    expect(answer).toMatchObject({ status: 400, body: { error: { code: 'event_invalid' } } });
  }
  expect(api.errors).toEqual([]);
});

test('data that can be read but not written again is refused', async () => {
  const nested = (levels: number) => JSON.parse('['.repeat(levels) + ']'.repeat(levels)) as unknown;
  const withData = (data: unknown) => ({ ...said, body: { content: 'hello', data } });
  expect(tryParse(EventDraft, withData(nested(MAX_DATA_DEPTH))).success).toBe(true);
  expect(tryParse(EventDraft, withData(nested(MAX_DATA_DEPTH + 1))).success).toBe(false);
  await using api = await startApi();
  const deep = JSON.stringify(withData('DEEP')).replace('"DEEP"', '['.repeat(20_000) + ']'.repeat(20_000));
  const { status, body } = await api.post(
    '/api/import',
    `{"troupe":1,"conversation":"c9"}\n${JSON.stringify(said)}\n${deep}`,
  );
  expect(status).toBe(201);
  expect(body).toMatchObject({ events: 1, skipped: [{ kind: 'invalid_event', count: 1 }] });
});
