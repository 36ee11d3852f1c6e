import fc from 'fast-check';
import { getEventHash } from 'nostr-tools/pure';
import { expect, test, vi } from 'vitest';
import { openVerifier, verify } from '../src/nostr-event.ts';
import { person } from './sign.ts';

const ana = person();

test('libsecp256k1 and noble agree on an event, whatever is changed in it', async () => {
  const quick = await openVerifier();
  const field = fc.constantFrom('id', 'pubkey', 'sig' as const);
  fc.assert(
    fc.property(
      fc.string({ unit: 'binary' }),
      fc.array(fc.string()),
      field,
      fc.nat(127),
      fc.nat(15),
      (...drawn) => {
        const [content, tag, name, at, digit] = drawn;
        const signed = ana.sign({
          content: content.toWellFormed(),
          tags: [tag.map((part) => part.toWellFormed())],
        });
        expect([quick(signed), verify(signed)]).toEqual([null, null]);
        const text = signed[name];
        const place = at % text.length;
        const changed = {
          ...signed,
          [name]: text.slice(0, place) + digit.toString(16) + text.slice(place + 1),
        };
        const verdict = verify(changed);
        expect(quick(changed)).toBe(verdict);
        expect(verdict === null).toBe(changed[name] === text);
      },
    ),
    { numRuns: 60 },
  );
});

test('signatures that are not points, or beyond the order of the curve, are refused by both', async () => {
  const quick = await openVerifier();
  const signed = ana.sign({ content: 'x' });
  const zeros = '0'.repeat(64);
  const most = 'f'.repeat(64);
  const [r, s] = [signed.sig.slice(0, 64), signed.sig.slice(64)];
  for (const sig of [zeros + zeros, most + most, r + most, r + zeros, zeros + s, most + s, s + r]) {
    expect([quick({ ...signed, sig }), verify({ ...signed, sig })]).toEqual(['signature', 'signature']);
  }
  for (const pubkey of [zeros, most]) {
    const named = { ...signed, pubkey };
    const unsigned = { ...named, id: getEventHash({ ...named, tags: [] }) };
    expect([quick(unsigned), verify(unsigned)]).toEqual(['signature', 'signature']);
  }
});

test('an event too large for the memory of WebAssembly is verified without it', async () => {
  const quick = await openVerifier();
  for (const size of [131_072, 4_000_000, 10]) {
    const signed = ana.sign({ content: 'é'.repeat(size) });
    const sig = signed.sig.replace(/^./, (digit) => (digit === '0' ? '1' : '0'));
    expect([quick(signed), quick({ ...signed, sig })]).toEqual([null, 'signature']);
  }
});

test('without WebAssembly the verdicts are the same', async () => {
  vi.stubGlobal('WebAssembly', undefined);
  try {
    const slow = await openVerifier();
    const signed = ana.sign({ content: 'x' });
    expect([slow(signed), slow({ ...signed, content: 'y' })]).toEqual([null, 'id']);
  } finally {
    vi.unstubAllGlobals();
  }
});
