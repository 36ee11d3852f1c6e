const REDIRECTS: readonly number[] = [301, 302, 303, 307, 308];

/** All that is sent on to another origin: whatever else a caller set may be a secret. */
const PORTABLE_HEADERS: readonly string[] = ['accept', 'accept-language', 'user-agent'];

export interface Hop {
  url: URL;
  headers: Readonly<Record<string, string>>;
}

/** Where an answer sends on to: null where it does not; a reason where nobody should follow. Pure. */
export function nextHop(
  hop: Hop,
  status: number,
  location: string | undefined,
): Hop | { refused: string } | null {
  if (!REDIRECTS.includes(status) || location === undefined) return null;
  const url = URL.parse(location, hop.url.href);
  if (!url) return { refused: 'it redirects to what is no address' };
  if (hop.url.protocol === 'https:' && url.protocol === 'http:')
    return { refused: 'it redirects from https to http' };
  if (url.origin === hop.url.origin) return { url, headers: hop.headers };
  const portable = Object.entries(hop.headers).filter(([name]) => PORTABLE_HEADERS.includes(name));
  return { url, headers: Object.fromEntries(portable) };
}
