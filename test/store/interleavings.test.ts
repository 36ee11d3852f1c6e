import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { canonicalJson } from '../../src/events/json.ts';
import { createStore } from '../../src/store/create-store.ts';
import { openSqliteDriver } from '../../src/store/sqlite/sqlite-driver.ts';
import { entryOf, logOf } from '../../packages/testing/src/store-stage.ts';

/** Few ids and contents, so that repeats and conflicts are frequent. */
const write = fc.record({
  conversation: fc.constantFrom('one', 'two'),
  entries: fc.array(
    fc.record({ id: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f'), content: fc.constantFrom('x', 'y') }),
    { maxLength: 4 },
  ),
  /** Whether the writer first waits for all earlier writes. */
  waits: fc.boolean(),
});

test('any interleaving of appends leaves dense logs with every id once and unchanged', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(write, { maxLength: 30 }), async (writes) => {
      const store = createStore(await openSqliteDriver({ path: ':memory:' }));
      const pending: Promise<void>[] = [];
      for (const { conversation, entries, waits } of writes) {
        const log = logOf(conversation);
        const append = store.append(
          log,
          entries.map(({ id, content }) => entryOf(id, { content })),
        );
        const checked = append.then(
          async (appended) => {
            // S2, S5: the reported outcome is stored.
            for (const { event } of appended) expect(await store.readById(log, event.id)).toEqual(event);
          },
          (error: unknown) => expect(error).toMatchObject({ code: 'event_conflict' }),
        );
        pending.push(checked);
        if (waits) await Promise.all(pending);
      }
      await Promise.all(pending);
      for (const conversation of ['one', 'two']) {
        const events = await store.read(logOf(conversation), { after: 0 });
        const wanted = writes
          .filter((each) => each.conversation === conversation)
          .flatMap((each) => each.entries);
        expect(events.map(({ seq }) => seq)).toEqual(events.map((_, at) => at + 1));
        expect(events.map(({ id }) => String(id)).toSorted()).toEqual(
          [...new Set(wanted.map(({ id }) => id))].toSorted(),
        );
        // Writes are executed in the order of their requests, so the first content is stored.
        for (const { id, body } of events)
          expect(body).toEqual({ content: wanted.find((each) => each.id === id)?.content });
      }
      await store.close();
    }),
    { numRuns: 200 },
  );
});

test('canonical JSON is JSON, and equal exactly for equal values', () => {
  const value = fc.jsonValue();
  const plain = (each: unknown): unknown => JSON.parse(JSON.stringify(each));
  fc.assert(
    fc.property(value, value, (a, b) => {
      expect(JSON.parse(canonicalJson(a))).toEqual(plain(a));
      expect(canonicalJson(a) === canonicalJson(b)).toBe(isDeepStrictEqual(plain(a), plain(b)));
    }),
    {
      examples: [
        [[], {}],
        [
          { b: 1, a: 2 },
          { a: 2, b: 1 },
        ],
      ],
    },
  );
  expect(canonicalJson(JSON.parse('{"b":1,"__proto__":{"a":2}}'))).toBe('{"__proto__":{"a":2},"b":1}');
});
