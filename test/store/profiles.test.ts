import { expect, test } from 'vitest';
import type { TenantId } from '../../src/events/index.ts';
import { createProfileBooks } from '../../src/library/facade/profile-book.ts';
import { type KeyValue, memoryKeyValue } from '../../src/base/key-value.ts';

const ACME = 'acme' as TenantId;

function process(entries: KeyValue, keepMs: number) {
  const made = { now: 0, reads: 0 };
  const counted: KeyValue = {
    ...entries,
    get(key) {
      made.reads += 1;
      return entries.get(key);
    },
  };
  const clock = { monotonic: () => made.now };
  return { made, books: createProfileBooks({ entriesOf: () => counted, clock, keepMs }) };
}

test('turns read a profile once, and see a change by their own process at once', async () => {
  const { made, books } = process(memoryKeyValue(), Infinity);
  expect(await books.known(ACME, 'uma')).toBeNull();
  await books.of(ACME).set('uma', { name: 'Uma' });
  expect(await books.known(ACME, 'uma')).toEqual({ name: 'Uma' });
  made.reads = 0;
  made.now = 1e9;
  expect(await books.known(ACME, 'uma')).toEqual({ name: 'Uma' });
  expect(made.reads).toBe(0);
  await books.of(ACME).remove('uma');
  expect(await books.known(ACME, 'uma')).toBeNull();
});

test('turns see a change by another process once what they know is as old as it may be', async () => {
  const entries = memoryKeyValue();
  const [one, other] = [process(entries, 5_000), process(entries, 5_000)];
  expect(await one.books.known(ACME, 'uma')).toBeNull();
  await other.books.of(ACME).set('uma', { name: 'Uma' });
  one.made.now = 4_999;
  expect(await one.books.known(ACME, 'uma')).toBeNull();
  expect(await one.books.of(ACME).get('uma')).toEqual({ name: 'Uma' });
  one.made.now = 5_000;
  expect(await one.books.known(ACME, 'uma')).toEqual({ name: 'Uma' });
});

test('a profile that was read while it was changed is read again', async () => {
  const entries = memoryKeyValue();
  const reading = Promise.withResolvers<void>();
  const slow: KeyValue = {
    ...entries,
    async get(key) {
      const found = await entries.get(key);
      await reading.promise;
      return found;
    },
  };
  const { books } = process(slow, Infinity);
  const before = books.known(ACME, 'uma');
  const changed = books.of(ACME).set('uma', { name: 'Uma' });
  reading.resolve();
  await changed;
  expect(await before).toBeNull();
  expect(await books.known(ACME, 'uma')).toEqual({ name: 'Uma' });
});
