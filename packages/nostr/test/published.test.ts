import { expect, test } from 'vitest';
import { createPublished } from '../src/published.ts';
import { memoryKeyValue } from '../../../src/base/key-value.ts';
import { ANA } from './outbound-stage.ts';
import { problemOf } from './verify-alone.ts';

const AT = 1_800_000_000_000;
const SAID = { conversation: 'nostr:a', event: 'nostr:a:ada:1:reply', at: AT } as never;
const EVENT = ANA.sign({ content: 'hello', at: AT / 1_000 });

test('the event signed first stays, also after a crash between its two entries', async () => {
  const keyValue = memoryKeyValue();
  const crashing = createPublished({
    ...keyValue,
    compareAndSet: async (key, from, to) => {
      if (key.startsWith('nostr/out/')) throw new Error('the process has crashed');
      return keyValue.compareAndSet(key, from, to);
    },
  });
  await expect(crashing.save(SAID, EVENT)).rejects.toThrow('crashed');
  const published = createPublished(keyValue);
  const again = ANA.sign({ content: 'hello', at: AT / 1_000, tags: [['e', 'f'.repeat(64)]] });
  expect(await published.save(SAID, again)).toEqual(EVENT);
  expect(await published.get(SAID, 'hello')).toEqual(EVENT);
  expect(await published.publishedAs(EVENT.id)).toEqual({
    conversation: 'nostr:a',
    event: 'nostr:a:ada:1:reply',
  });
});

test('an entry for other content is not returned, and is replaced', async () => {
  const published = createPublished(memoryKeyValue());
  await published.save(SAID, EVENT);
  expect(await published.get(SAID, 'other words')).toBeNull();
  const other = ANA.sign({ content: 'other words', at: AT / 1_000 });
  expect(problemOf(await published.save(SAID, other))).toBeNull();
  expect(await published.get(SAID, 'other words')).toEqual(other);
});

test('the same event id at another time is another event', async () => {
  const published = createPublished(memoryKeyValue());
  await published.save(SAID, EVENT);
  const later = { ...(SAID as object), at: AT + 5_000 } as never;
  expect(await published.get(later, 'hello')).toBeNull();
  expect(await published.place(later, '')).toBeNull();
  expect(await published.place(SAID, '')).toMatchObject({ id: EVENT.id });
});
