import { expect, test } from 'vitest';
import type { TenantId } from '../../src/events/index.ts';
import { createProfileRepositories } from '../../src/library/facade/profile-repository.ts';
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
  return { made, repositories: createProfileRepositories({ entriesOf: () => counted, clock, keepMs }) };
}

test('turns read a profile once, and see a change by their own process at once', async () => {
  const { made, repositories } = process(memoryKeyValue(), Infinity);
  expect(await repositories.known(ACME, 'uma')).toBeNull();
  await repositories.of(ACME).set('uma', { name: 'Uma' });
  expect(await repositories.known(ACME, 'uma')).toEqual({ name: 'Uma' });
  made.reads = 0;
  made.now = 1e9;
  expect(await repositories.known(ACME, 'uma')).toEqual({ name: 'Uma' });
  expect(made.reads).toBe(0);
  await repositories.of(ACME).remove('uma');
  expect(await repositories.known(ACME, 'uma')).toBeNull();
});

test('turns see a change by another process once what they know is as old as it may be', async () => {
  const entries = memoryKeyValue();
  const [one, other] = [process(entries, 5_000), process(entries, 5_000)];
  expect(await one.repositories.known(ACME, 'uma')).toBeNull();
  await other.repositories.of(ACME).set('uma', { name: 'Uma' });
  one.made.now = 4_999;
  expect(await one.repositories.known(ACME, 'uma')).toBeNull();
  expect(await one.repositories.of(ACME).get('uma')).toEqual({ name: 'Uma' });
  one.made.now = 5_000;
  expect(await one.repositories.known(ACME, 'uma')).toEqual({ name: 'Uma' });
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
  const { repositories } = process(slow, Infinity);
  const before = repositories.known(ACME, 'uma');
  const changed = repositories.of(ACME).set('uma', { name: 'Uma' });
  reading.resolve();
  await changed;
  expect(await before).toBeNull();
  expect(await repositories.known(ACME, 'uma')).toEqual({ name: 'Uma' });
});
