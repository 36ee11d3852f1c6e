import { expect, test } from 'vitest';
import * as z from 'zod';
import { Event, EVENT_KINDS, isAbout } from '../../src/events/index.ts';
import type { EventRow } from '../../src/store/driver.ts';
import { decodeEvent, payloadHash } from '../../src/store/event-row.ts';
import { agentSays, at, call, personSays, result } from '../support/extract-events.ts';

const LOG = { tenant: 'default', conversation: 'c' } as Parameters<typeof decodeEvent>[0];

/** Types of schemas whose output may differ from their input. */
const CHANGING = ['default', 'prefault', 'catch', 'transform', 'pipe'];

/** The types of a schema and of everything in it. */
function typesIn(schema: unknown, found = new Set<string>()): Set<string> {
  if (Array.isArray(schema)) for (const part of schema) typesIn(part, found);
  else if (schema instanceof z.core.$ZodType) {
    const { type, ...parts } = schema._zod.def;
    found.add(type);
    for (const part of Object.values(parts)) typesIn(part, found);
  } else if (schema !== null && typeof schema === 'object') {
    if (Object.getPrototypeOf(schema) === Object.prototype)
      for (const part of Object.values(schema)) typesIn(part, found);
  }
  return found;
}

test('the kinds that are validated again are those whose schemas fill in fields', () => {
  const { options } = (Event as unknown as { _zod: { def: { options: z.ZodObject[] } } })._zod.def;
  const kindOf = (option: z.ZodObject) => [...(option.shape['kind'] as z.ZodLiteral<string>).values][0] ?? '';
  const changing = options.filter((option) => CHANGING.some((type) => typesIn(option).has(type)));
  const completed = EVENT_KINDS.filter((kind) => isAbout({ kind }, 'defaults'));
  expect(changing.map(kindOf).toSorted()).toEqual(completed.toSorted());
});

function rowOf(event: Event, change: Partial<EventRow> = {}): EventRow {
  const { author, body, id, seq, kind, to } = event;
  const data = JSON.stringify({ author, body });
  const row = {
    ...LOG,
    id,
    seq,
    at: event.at,
    kind,
    to,
    tokens: 3,
    turn: null,
    data,
    chain: null,
    ...change,
  };
  return { hash: payloadHash(row), ...row };
}

test('an intact row is the event that validation gives', () => {
  for (const event of at([personSays('hi'), agentSays('ok'), call('read', { path: 'a' }), result('found')])) {
    const row = rowOf(event);
    const decoded = decodeEvent(LOG, row);
    expect(decoded.damage).toBeNull();
    expect(Event.parse(decoded.event)).toEqual(decoded.event);
  }
});

test('a row whose columns are no longer those of an event is unreadable', () => {
  const [event] = at([personSays('hi')]);
  for (const change of [{ id: '' }, { at: -1 }, { tokens: 0.5 }, { at: 'yesterday' as never }])
    expect(decodeEvent(LOG, rowOf(event!, change)).damage).toMatchObject({ kind: 'unreadable' });
});

const FORGED = '{"author":{"kind":"user"},"body":{"content":7}}';

test('a changed row is validated', () => {
  const [event] = at([personSays('hi')]);
  const changed = { ...rowOf(event!), data: FORGED };
  expect(decodeEvent(LOG, changed).damage).toMatchObject({ kind: 'unreadable' });
});

test('a row of no kind is unreadable, also with the hash of its content', () => {
  const [event] = at([personSays('hi')]);
  expect(decodeEvent(LOG, rowOf(event!, { kind: 'gossip' })).damage).toMatchObject({ kind: 'unreadable' });
});

test('a row whose hash was computed anew is taken as it is: who writes to the database is trusted', () => {
  const [event] = at([personSays('hi')]);
  for (const kind of ['message', 'membership.changed', 'baseline'])
    expect(decodeEvent(LOG, rowOf(event!, { kind, data: FORGED })).damage).toBeNull();
});

test('an event that lacks a field which was added later has its default', () => {
  const [event] = at([personSays('hi')]);
  const data = JSON.stringify({ author: event!.author, body: { items: [] } });
  const { body } = decodeEvent(LOG, rowOf(event!, { kind: 'todos', data })).event;
  expect(body).toEqual({ items: [], later: false });
});
