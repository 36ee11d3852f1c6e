import fc from 'fast-check';
import { verifiedSymbol, verifyEvent } from 'nostr-tools/pure';
import { describe, expect, test } from 'vitest';
import { isAhead, readEvent, verify } from '../src/nostr-event.ts';
import { person } from './sign.ts';

const ana = person();
const ben = person();
const EVENT = ana.sign({
  content: 'pay Ben 5 €',
  tags: [
    ['p', ben.pubkey],
    ['t', 'money'],
  ],
  at: 1_700_000_000,
});

function verdictOf(raw: unknown): string {
  const event = readEvent(raw);
  return typeof event === 'string' ? event : (verify(event) ?? 'valid');
}

/** The text with one character changed. */
function flip(text: string, at = 0): string {
  const digit = text[at] === '0' ? '1' : '0';
  return text.slice(0, at) + digit + text.slice(at + 1);
}

test('an unchanged event is valid', () => {
  expect(verdictOf(EVENT)).toBe('valid');
});

describe('an event with one change is refused:', () => {
  test.each([
    ['id', { ...EVENT, id: flip(EVENT.id) }, 'id'],
    ['pubkey', { ...EVENT, pubkey: flip(EVENT.pubkey, 5) }, 'id'],
    ['pubkey of another author', { ...EVENT, pubkey: ben.pubkey }, 'id'],
    ['sig', { ...EVENT, sig: flip(EVENT.sig, 70) }, 'signature'],
    ['sig of another event', { ...EVENT, sig: ana.sign({ content: 'other' }).sig }, 'signature'],
    ['created_at', { ...EVENT, created_at: EVENT.created_at + 1 }, 'id'],
    ['kind', { ...EVENT, kind: 11 }, 'id'],
    [
      'tags',
      {
        ...EVENT,
        tags: [
          ['p', ana.pubkey],
          ['t', 'money'],
        ],
      },
      'id',
    ],
    ['one tag fewer', { ...EVENT, tags: EVENT.tags.slice(1) }, 'id'],
    ['content', { ...EVENT, content: 'pay Ben 6 €' }, 'id'],
    ['content with a lone surrogate', { ...EVENT, content: 'pay Ben 5 \ud800' }, 'shape'],
    ['id in upper case', { ...EVENT, id: EVENT.id.toUpperCase() }, 'shape'],
    ['pubkey in upper case', { ...EVENT, pubkey: EVENT.pubkey.toUpperCase() }, 'shape'],
    ['sig in upper case', { ...EVENT, sig: EVENT.sig.toUpperCase() }, 'shape'],
    ['id too short', { ...EVENT, id: EVENT.id.slice(1) }, 'shape'],
    ['created_at as text', { ...EVENT, created_at: '1700000000' }, 'shape'],
    ['created_at with a fraction', { ...EVENT, created_at: 1_700_000_000.5 }, 'shape'],
    ['negative created_at', { ...EVENT, created_at: -1 }, 'shape'],
    ['kind beyond 16 bits', { ...EVENT, kind: 65_536 }, 'shape'],
    ['a tag with a number', { ...EVENT, tags: [['p', 1]] }, 'shape'],
    ['tags as an object', { ...EVENT, tags: {} }, 'shape'],
    ['content as an object', { ...EVENT, content: { $gt: '' } }, 'shape'],
    ['no sig', { ...EVENT, sig: undefined }, 'shape'],
    ['nothing', null, 'shape'],
    ['a list', [EVENT], 'shape'],
  ])('%s', (_name, raw, verdict) => {
    expect(verdictOf(raw)).toBe(verdict);
  });
});

test('an event with any changed digit in id, pubkey or signature is refused', () => {
  fc.assert(
    fc.property(
      fc.constantFrom('id', 'pubkey', 'sig' as const),
      fc.nat(127),
      fc.integer({ min: 1, max: 15 }),
      (field, at, by) => {
        const text = EVENT[field];
        const place = at % text.length;
        const digit = ((Number.parseInt(text[place] ?? '0', 16) + by) % 16).toString(16);
        const mutated = text.slice(0, place) + digit + text.slice(place + 1);
        expect(verdictOf({ ...EVENT, [field]: mutated })).toBe(field === 'sig' ? 'signature' : 'id');
      },
    ),
    { numRuns: 60 },
  );
});

test('the verdict stored on a verified object does not count for a copy with other content', () => {
  const verified = structuredClone(EVENT) as Parameters<typeof verifyEvent>[0];
  expect(verifyEvent(verified)).toBe(true);
  const forged = { ...verified, content: 'pay Ben 5000 €', pubkey: ben.pubkey };
  expect(forged[verifiedSymbol]).toBe(true);
  expect(verifyEvent(forged)).toBe(true);
  expect(verdictOf(forged)).toBe('id');
});

test('unsigned fields are not read', () => {
  const event = readEvent({
    ...EVENT,
    tenant: 'other',
    conversation: 'secret',
    to: ['admin'],
    ...(JSON.parse('{"__proto__":{"kind":7},"constructor":{}}') as object),
  });
  expect(event).toEqual(EVENT);
  expect(Object.keys(event)).toEqual(Object.keys(readEvent(EVENT)));
});

test('10,000 tags, 300 people or 64 KiB of tags are refused before anything is hashed', () => {
  const many = (count: number, of: (n: number) => string[]) => Array.from({ length: count }, (_, n) => of(n));
  const hex = (n: number) => n.toString(16).padStart(64, '0');
  expect(readEvent({ ...EVENT, tags: many(10_000, (n) => ['p', hex(n)]) })).toBe('tags');
  expect(readEvent({ ...EVENT, tags: many(300, (n) => ['p', hex(n)]) })).toBe('tags');
  expect(readEvent({ ...EVENT, tags: many(20, () => ['t', 'x'.repeat(4_000)]) })).toBe('tags');
  expect(readEvent({ ...EVENT, tags: many(300, () => ['p', hex(1)]) })).toMatchObject({ id: EVENT.id });
});

test('an event may be of any age, and up to 15 minutes ahead', () => {
  const now = 1_700_000_000_000;
  expect(isAhead({ created_at: 0 }, now)).toBe(false);
  expect(isAhead({ created_at: 1_700_000_900 }, now)).toBe(false);
  expect(isAhead({ created_at: 1_700_000_901 }, now)).toBe(true);
});
