import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { whyNotPublic } from '../../src/base/net/allow-list.ts';

const REFUSED = `
  0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.127.255.255 100.100.100.200 127.0.0.1 127.255.255.254
  169.254.169.254 169.254.0.1 168.63.129.16 172.16.0.1 172.31.255.255 192.0.0.192 192.0.2.1 192.88.99.1 192.168.0.1
  198.18.0.1 198.19.255.255 198.51.100.7 203.0.113.9 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255
  :: ::1 0:0:0:0:0:0:0:1 ::7f00:1 ::127.0.0.1 ::8.8.8.8 ::ffff:127.0.0.1 ::ffff:7f00:1 ::ffff:8.8.8.8 ::FFFF:10.0.0.1
  fc00::1 fd00:ec2::254 fe80::1 fe80::1%lo febf::1 fec0::1 ff02::1 100::1 2001:db8::1 3fff::1 5f00::1 2002:7f00:1::
  2002:808:808::1 2001:0:7f00:1::1 2001:10::1 2001:2::1 64:ff9b::127.0.0.1 64:ff9b::7f00:1 64:ff9b::a9fe:a9fe 64:ff9b::
  64:ff9b::1 64:ff9b::a00:0 64:ff9b:1::808:808 64:ff9b:0:0:1::808:808 2606:4700::1%eth0
  example.com 1.2.3 0x7f000001 2130706433 0177.0.0.1 8.8.8.8:80 [::1] 8.8.8.8%1
`;
const PUBLIC = `
  1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.1 100.63.255.255 100.128.0.1 126.255.255.255 128.0.0.1 169.253.255.255 169.255.0.0
  172.15.255.255 172.32.0.1 192.0.1.1 192.167.255.255 192.169.0.1 198.17.255.255 198.20.0.1 223.255.255.255
  2606:4700:4700::1111 2a00:1450:4001::1 2001:4860:4860::8888 64:ff9b::8.8.8.8 64:ff9b::808:808
`;
const words = (text: string): string[] => text.trim().split(/\s+/);

describe('addresses', () => {
  it.each(['', ...words(REFUSED)])('are refused: %s', (address) => {
    expect(whyNotPublic(address)).toEqual(expect.any(String));
  });

  it.each(words(PUBLIC))('are public: %s', (address) => {
    expect(whyNotPublic(address)).toBeNull();
  });

  it('are checked by their number, also under NAT64, and refused in any other embedding', () => {
    const octets = fc.tuple(...[0, 1, 2, 3].map(() => fc.nat(255)));
    // Near the ends of the ranges, where a wrong mask shows.
    const borders = fc
      .constantFrom(
        0x0a000000,
        0x64400000,
        0x7f000000,
        0xa9fe0000,
        0xac100000,
        0xc0a80000,
        0xc6120000,
        0xe0000000,
      )
      .chain((at) => fc.integer({ min: -0x200000, max: 0x200000 }).map((off) => at + off))
      .map((value) => [24, 16, 8, 0].map((shift) => (value >>> shift) & 0xff));
    fc.assert(
      fc.property(fc.oneof(octets, borders), (bytes) => {
        const dotted = bytes.join('.');
        const [a = 0, b = 0, c = 0, d = 0] = bytes;
        const isPublic = whyNotPublic(dotted) === null;
        expect(isPublic).toBe(isPublicByHand(a, b, c, d));
        const [high, low] = [a * 256 + b, c * 256 + d].map((group) => group.toString(16));
        for (const nat64 of [
          `64:ff9b::${dotted}`,
          `64:ff9b::${high}:${low}`,
          `0064:FF9B:0:0:0:0:${high}:${low}`,
        ])
          expect(whyNotPublic(nat64) === null).toBe(isPublic);
        for (const prefix of ['::ffff:', '::', '::ffff:0:', '2002:', 'fe80::', '64:ff9b:1::'])
          expect(whyNotPublic(`${prefix}${high}:${low}${prefix === '2002:' ? '::' : ''}`)).not.toBeNull();
      }),
      { numRuns: 3_000 },
    );
  });
});

/** The registry again, as comparisons instead of masks. */
function isPublicByHand(a: number, b: number, c: number, d: number): boolean {
  if (a === 0 || a === 10 || a === 127 || a >= 224) return false;
  if (a === 100 && b >= 64 && b < 128) return false;
  if (a === 169 && b === 254) return false;
  if (a === 172 && b >= 16 && b < 32) return false;
  if (a === 192 && (b === 168 || (b === 0 && (c === 0 || c === 2)) || (b === 88 && c === 99))) return false;
  if (a === 198 && (b === 18 || b === 19 || (b === 51 && c === 100))) return false;
  if (a === 203 && b === 0 && c === 113) return false;
  return !(a === 168 && b === 63 && c === 129 && d === 16);
}
