import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { Event, EventDraft } from '../../src/events/index.ts';
import { exportConversation } from '../../src/library/import/index.ts';
import { collect, keyValueOf } from './collect.ts';

const slug = fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9_-]{0,20}$/);
const text = fc.oneof(fc.string({ unit: 'binary', maxLength: 40 }), fc.constant('lone \ud800, NUL \u0000'));
const author = fc.record({
  kind: fc.constantFrom('user', 'agent', 'system'),
  id: fc.string({ minLength: 1, maxLength: 20 }),
  name: fc.string({ minLength: 1, maxLength: 20, unit: 'grapheme' }),
});
const callPart = fc.record({ id: fc.string({ minLength: 1, maxLength: 9 }), name: slug, args: fc.json() });
const content = fc.oneof(
  fc.record({ kind: fc.constant('message'), body: fc.record({ content: text }) }),
  fc.record({
    kind: fc.constant('step'),
    body: fc.record({
      index: fc.nat(),
      content: text,
      calls: fc.array(callPart, { minLength: 1, maxLength: 3 }),
    }),
  }),
  fc.record({
    kind: fc.constant('tool.result'),
    body: fc.record({
      call: slug,
      name: slug,
      outcome: fc.constantFrom('done', 'failed', 'lost'),
      content: text,
    }),
  }),
  fc.record({
    kind: fc.constant('turn.failed'),
    body: fc.record({
      covers: fc.array(fc.integer({ min: 1, max: 99 })),
      code: slug,
      message: text,
      partial: text,
    }),
  }),
  fc.record({
    kind: fc.constant('membership.changed'),
    body: fc.record({ change: fc.constant('joined'), agent: slug, policy: fc.constantFrom('full', 'fresh') }),
  }),
);
const envelope = fc.record(
  {
    id: slug,
    author,
    to: fc.array(slug, { maxLength: 3 }),
    turn: fc.string({ maxLength: 30 }),
    replyTo: slug,
    hop: fc.nat(9),
    context: fc.record(
      {
        rules: slug,
        mode: fc.constantFrom('chat', 'agent', 'run'),
        run: slug,
        fragments: fc.dictionary(slug, slug, { maxKeys: 3 }),
        memories: fc.array(fc.integer({ min: 1, max: 99 })),
        attachments: fc.array(slug),
      },
      { requiredKeys: [] },
    ),
  },
  { requiredKeys: ['id', 'author', 'to'] },
);
const log = fc.record({
  tenant: slug,
  conversation: fc.constant('origin'),
  at: fc.nat().map((ms) => ms + 1e12),
  tokens: fc.nat(),
});
const events = fc
  .array(fc.tuple(envelope, content, log))
  .map((rows) => rows.map(([a, b, c], i) => Event.parse({ ...a, ...b, ...c, seq: i + 1 })));

async function* pages(list: Event[]): AsyncGenerator<Event[]> {
  yield list;
}

async function exported(list: Event[], conversation = 'origin'): Promise<string> {
  let file = '';
  for await (const line of exportConversation(pages(list), conversation, 'kept')) file += line;
  return file;
}

test('importing an export gives the same drafts back', async () => {
  await fc.assert(
    fc.asyncProperty(events, async (list) => {
      const file = await exported(list);
      const { items, report } = await collect(file);
      const drafts = list.map(
        ({ tenant: _t, conversation: _c, seq: _s, tokens: _n, at: _a, ...draft }) => draft,
      );
      expect(items.map((item) => item.draft)).toEqual(drafts);
      expect(items.map((item) => item.at)).toEqual(list.map((event) => event.at));
      expect(report).toMatchObject({
        format: 'troupe',
        conversations: ['origin'],
        repaired: [],
        skipped: [],
      });
      for (const item of items) expect(EventDraft.safeParse(item.draft).success).toBe(true);
    }),
  );
});

test('an export goes into the named conversation, and an empty export is no error', async () => {
  expect((await collect(await exported([]))).report).toMatchObject({ conversations: ['origin'], events: 0 });
  expect((await collect(await exported([]), { conversation: 'copy' })).report.conversations).toEqual([
    'copy',
  ]);
});

test('an invalid event is skipped and reported; the others are imported', async () => {
  const good = {
    id: 'e1',
    author: { kind: 'user', id: 'u', name: 'U' },
    to: [],
    kind: 'message',
    body: { content: 'x' },
    at: 5,
  };
  const lines = [{ troupe: 1, conversation: 'c' }, { ...good, kind: 'gossip' }, good, 42].map((line) =>
    JSON.stringify(line),
  );
  const { drafts, report } = await collect(lines.join('\n'));
  expect(drafts.map((draft) => draft.id)).toEqual(['e1']);
  expect(keyValueOf(report.skipped)).toEqual({ invalid_event: 1, unknown_line: 1 });
});

test('an export of a newer version is refused', async () => {
  await expect(collect('{"troupe":2,"conversation":"c"}')).rejects.toMatchObject({ code: 'import_invalid' });
});

test('fields that this version does not know are left out and counted', async () => {
  const author = { kind: 'user', id: 'u', name: 'U' };
  const hash = 'a'.repeat(64);
  const image = { type: 'image', hash, mediaType: 'image/png', name: 'x.png', bytes: 3, shade: 'dark' };
  const body = { content: 'x', mood: 'glad', tone: 'low', attachments: [image] };
  const line = { id: 'e1', author, to: [], kind: 'message', body, at: 5, colour: 'red' };
  const { drafts, report } = await collect(
    [{ troupe: 1, conversation: 'c' }, line].map((each) => JSON.stringify(each)).join('\n'),
  );
  const { shade: _, ...known } = image;
  expect(drafts).toMatchObject([{ id: 'e1', body: { content: 'x', attachments: [known] } }]);
  expect(drafts[0]).not.toHaveProperty('colour');
  expect(drafts[0]?.body).not.toHaveProperty('mood');
  expect(keyValueOf(report.skipped)).toEqual({ unknown_field: 3 });
});
