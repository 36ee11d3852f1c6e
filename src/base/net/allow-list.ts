import { BlockList, isIP, isIPv4, isIPv6 } from 'node:net';
import { TroupeError } from '../errors.ts';

/** Ports that need no separate entry. */
const WEB_PORTS: readonly number[] = [80, 443];
/** Addresses of the machine's own names, with any resolver. */
const LOOPBACKS: readonly string[] = ['127.0.0.1', '::1'];

/** The target of a request. `host` is in the form of URLs: lower case, no brackets, no dot at the end. */
interface Target {
  host: string;
  port: number;
}

/** All addresses of a name. */
export type Resolve = (host: string) => Promise<readonly { address: string; family: number }[]>;

/** Checks one address of a target: null if it is allowed, else the reason why not. */
export type AddressRule = (address: string) => string | null;

/** Decides whether a target may be reached: a reason for the refusal, or the rule that its addresses must pass. */
export type ReachRule = (target: Target) => { refused: string } | { addresses: AddressRule };

type Entry =
  | { kind: 'public' }
  | { kind: 'host'; host: string; port: number | null }
  | { kind: 'below'; suffix: string }
  | { kind: 'range'; list: BlockList; family: 4 | 6 };

/**
 * Builds the rule of an allow list. Entries: `host`, `*.host` (subdomains), `host:port`, `ip`, `ip:port`,
 * `[ipv6]:port`, `cidr`, and `*` for every public host. Without a list, every public host is allowed. With one, only
 * what it names; a non-public address needs an ip, a cidr or a `host:port` entry. Throws `config_invalid` for an
 * invalid entry.
 */
export function reachRule(allow: readonly string[] | undefined): ReachRule {
  const entries: readonly Entry[] = allow?.map(parseEntry) ?? [{ kind: 'public' }];
  const inRanges = (address: string): boolean =>
    entries.some(
      (entry) =>
        entry.kind === 'range' &&
        isIP(address) === entry.family &&
        entry.list.check(address, entry.family === 4 ? 'ipv4' : 'ipv6'),
    );
  return ({ host, port }) => {
    const isExact = entries.some(
      (entry) => entry.kind === 'host' && entry.host === host && entry.port === port,
    );
    if (isExact) return { addresses: () => null };
    if (!WEB_PORTS.includes(port)) return { refused: `port ${port} is not allowed` };
    const isNamed = entries.some((entry) => names(entry, host));
    const isListed = isNamed || entries.some(({ kind }) => kind === 'range');
    if (isListed && isLoopbackName(host) && !LOOPBACKS.some(inRanges))
      return { refused: 'it is a name of the machine itself' };
    if (isNamed) return { addresses: (address) => (inRanges(address) ? null : whyNotPublic(address)) };
    if (!isListed) return { refused: 'it is not on the allow list' };
    return { addresses: (address) => (inRanges(address) ? null : 'not on the allow list') };
  };
}

/** The host in one canonical form, however the URL writes it: other number bases, capitals, a dot at the end. */
export function hostOf(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
}

export function portOf(url: URL): number {
  if (url.port !== '') return Number(url.port);
  return url.protocol === 'https:' ? 443 : 80;
}

/** RFC 6761: these names always mean the machine itself, without a lookup. */
function isLoopbackName(host: string): boolean {
  return host === 'localhost' || host.endsWith('.localhost');
}

function names(entry: Entry, host: string): boolean {
  if (entry.kind === 'public') return true;
  if (entry.kind === 'below') return isIP(host) === 0 && host.endsWith(entry.suffix);
  return entry.kind === 'host' && entry.port === null && entry.host === host;
}

function parseEntry(text: string): Entry {
  if (text === '*') return { kind: 'public' };
  const [base = '', bits] = text.split('/');
  if (bits !== undefined) return rangeEntry(text, base, bits);
  if (isIP(text) !== 0) return rangeEntry(text, text, isIP(text) === 4 ? '32' : '128');
  const below = text.startsWith('*.');
  const { host, port } = parseHost(text, below ? text.slice(2) : text);
  if (!below) return isIP(host) !== 0 && port === null ? parseEntry(host) : { kind: 'host', host, port };
  if (port !== null || isIP(host) !== 0) throw notAnEntry(text);
  return { kind: 'below', suffix: `.${host}` };
}

function rangeEntry(text: string, base: string, bits: string): Entry {
  const family = isIP(base);
  if ((family !== 4 && family !== 6) || base.includes('%')) throw notAnEntry(text);
  if (!/^\d{1,3}$/.test(bits) || Number(bits) > (family === 4 ? 32 : 128)) throw notAnEntry(text);
  return { kind: 'range', list: listOf([`${base}/${bits}`]), family };
}

/** Uses the URL parser, so that both sides of the comparison are parsed alike. */
function parseHost(text: string, rest: string): { host: string; port: number | null } {
  const port = /:(\d{1,5})$/.exec(rest)?.[1];
  const url = /[/?#@\\\s*]/.test(rest) ? null : URL.parse(`http://${rest}`);
  if (!url || url.hostname === '') throw notAnEntry(text);
  return { host: hostOf(url), port: port === undefined ? null : Number(port) };
}

function notAnEntry(text: string): TroupeError {
  const forms = 'host, *.host, host:port, an IP address, a range like 10.0.0.0/8, or * for every public host';
  return new TroupeError('config_invalid', `allow: ${JSON.stringify(text)} is none of: ${forms}`, {
    entry: text,
  });
}

/** IPv4 ranges without public servers, by reason (IANA special-purpose registries). */
const NOT_PUBLIC_IPV4: readonly (readonly [reason: string, ranges: readonly string[]])[] = [
  ['unspecified', ['0.0.0.0/8']],
  ['private', ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16']],
  ['shared by a carrier', ['100.64.0.0/10']],
  ['loopback', ['127.0.0.0/8']],
  ['link-local', ['169.254.0.0/16']],
  // One address inside a public range: the metadata service of a large cloud.
  ['a cloud host', ['168.63.129.16/32']],
  ['reserved', ['192.0.0.0/24', '192.88.99.0/24', '240.0.0.0/4']],
  ['for documentation', ['192.0.2.0/24', '198.51.100.0/24', '203.0.113.0/24']],
  ['for benchmarks', ['198.18.0.0/15']],
  ['multicast', ['224.0.0.0/4']],
];

/** Only global unicast is public. These are the parts of it that are not public, or that wrap other addresses. */
const NOT_PUBLIC_IPV6: readonly (readonly [reason: string, ranges: readonly string[]])[] = [
  ['a tunnel', ['2001::/32', '2002::/16']],
  ['for documentation', ['2001:db8::/32', '3fff::/20']],
  ['reserved', ['2001::/23']],
];
const GLOBAL_UNICAST = '2000::/3';
/** Networks without IPv4 reach it under this prefix; the wrapped address decides. */
const NAT64 = '64:ff9b::/96';

const ipv4Rules = NOT_PUBLIC_IPV4.map(([reason, ranges]) => [reason, listOf(ranges)] as const);
const ipv6Rules = NOT_PUBLIC_IPV6.map(([reason, ranges]) => [reason, listOf(ranges)] as const);
const globalUnicast = listOf([GLOBAL_UNICAST]);
const nat64 = listOf([NAT64]);

/**
 * Why an address is not fetched from by default; null if it is public. Refuses anything but a plain address: zones,
 * and every IPv6 form that embeds an IPv4 address except NAT64.
 */
export function whyNotPublic(address: string): string | null {
  if (isIPv4(address)) return ipv4Rules.find(([, list]) => list.check(address, 'ipv4'))?.[0] ?? null;
  if (!isIPv6(address) || address.includes('%')) return 'not an address';
  if (nat64.check(address, 'ipv6')) return whyNotPublic(wrappedIn(address));
  if (!globalUnicast.check(address, 'ipv6')) return 'not a public IPv6 address';
  return ipv6Rules.find(([, list]) => list.check(address, 'ipv6'))?.[0] ?? null;
}

/** One family per list: a list of both would treat the IPv6 form of an IPv4 address as that IPv4 address. */
function listOf(ranges: readonly string[]): BlockList {
  const list = new BlockList();
  for (const range of ranges) {
    const [base = '', bits] = range.split('/');
    list.addSubnet(base, Number(bits), isIPv4(base) ? 'ipv4' : 'ipv6');
  }
  return list;
}

/** The last 32 bits as an IPv4 address. A URL holds an IPv6 address in its shortest form, here `64:ff9b::h:l`. */
function wrappedIn(address: string): string {
  const groups = new URL(`http://[${address}]`).hostname.slice(1, -1).split('::')[1]?.split(':') ?? [];
  const [low = 0, high = 0] = groups.map((group) => Number.parseInt(group || '0', 16)).reverse();
  return [high >> 8, high & 0xff, low >> 8, low & 0xff].join('.');
}
