import { BlockList, isIPv4, isIPv6 } from 'node:net';

/** Ranges that no public server answers from, by what they are for (IANA special-purpose registries). */
const NOT_PUBLIC_IPV4: readonly (readonly [reason: string, ranges: readonly string[]])[] = [
  ['unspecified', ['0.0.0.0/8']],
  ['private', ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16']],
  ['shared by a carrier', ['100.64.0.0/10']],
  ['loopback', ['127.0.0.0/8']],
  ['link-local', ['169.254.0.0/16']],
  // One address inside a public range: what the hosts of a large cloud tell their machines.
  ['a cloud host', ['168.63.129.16/32']],
  ['reserved', ['192.0.0.0/24', '192.88.99.0/24', '240.0.0.0/4']],
  ['for documentation', ['192.0.2.0/24', '198.51.100.0/24', '203.0.113.0/24']],
  ['for benchmarks', ['198.18.0.0/15']],
  ['multicast', ['224.0.0.0/4']],
];

/** Only global unicast is public at all; these are parts of it that are not, or that wrap other addresses. */
const NOT_PUBLIC_IPV6: readonly (readonly [reason: string, ranges: readonly string[]])[] = [
  ['a tunnel', ['2001::/32', '2002::/16']],
  ['for documentation', ['2001:db8::/32', '3fff::/20']],
  ['reserved', ['2001::/23']],
];
const GLOBAL_UNICAST = '2000::/3';
/** Networks without IPv4 reach it under this prefix: what is wrapped decides. */
const NAT64 = '64:ff9b::/96';

const ipv4Rules = NOT_PUBLIC_IPV4.map(([reason, ranges]) => [reason, listOf(ranges)] as const);
const ipv6Rules = NOT_PUBLIC_IPV6.map(([reason, ranges]) => [reason, listOf(ranges)] as const);
const globalUnicast = listOf([GLOBAL_UNICAST]);
const nat64 = listOf([NAT64]);

/**
 * Why nothing is fetched from an address by default; null where it is public. Refuses whatever is no address in its
 * plain form, with a zone, and every IPv6 form that carries an IPv4 address but that of NAT64.
 */
export function whyNotPublic(address: string): string | null {
  if (isIPv4(address)) return ipv4Rules.find(([, list]) => list.check(address, 'ipv4'))?.[0] ?? null;
  if (!isIPv6(address) || address.includes('%')) return 'not an address';
  if (nat64.check(address, 'ipv6')) return whyNotPublic(wrappedIn(address));
  if (!globalUnicast.check(address, 'ipv6')) return 'not a public IPv6 address';
  return ipv6Rules.find(([, list]) => list.check(address, 'ipv6'))?.[0] ?? null;
}

/** Of one family only: a list of both would take the IPv6 form of an IPv4 address for the IPv4 address. */
export function listOf(ranges: readonly string[]): BlockList {
  const list = new BlockList();
  for (const range of ranges) {
    const [base = '', bits] = range.split('/');
    list.addSubnet(base, Number(bits), isIPv4(base) ? 'ipv4' : 'ipv6');
  }
  return list;
}

/** The last 32 bits, as an IPv4 address. A URL has an IPv6 address in its shortest form, which here is `64:ff9b::h:l`. */
function wrappedIn(address: string): string {
  const groups = new URL(`http://[${address}]`).hostname.slice(1, -1).split('::')[1]?.split(':') ?? [];
  const [low = 0, high = 0] = groups.map((group) => Number.parseInt(group || '0', 16)).reverse();
  return [high >> 8, high & 0xff, low >> 8, low & 0xff].join('.');
}
