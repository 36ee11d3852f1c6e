import { TroupeError } from '../errors.ts';

const REDIRECTS: readonly number[] = [301, 302, 303, 307, 308];
const MAX_REDIRECTS = 5;

/**
 * `fetch` that stays where it was sent: what is asked, and the key it is asked with, is for one origin. A redirect within
 * it is followed where it keeps method and body. Throws `address_refused` for any other, with both origins.
 */
export async function fetchWithinOrigin(input: string | URL, init: RequestInit = {}): Promise<Response> {
  const first = new URL(input);
  const keeps = (status: number) => status === 307 || status === 308 || (init.method ?? 'GET') === 'GET';
  let url = first;
  for (let followed = 0; ; followed += 1) {
    const response = await fetch(url, { ...init, redirect: 'manual' });
    const location = REDIRECTS.includes(response.status) ? response.headers.get('location') : null;
    if (location === null) return response;
    // Nobody reads it, and its connection would be held for as long as it comes.
    response.body?.cancel().catch(() => undefined);
    const next = URL.parse(location, url.href);
    if (next?.origin !== first.origin)
      throw refused(
        first,
        `it redirects to ${next ? `another origin, ${next.origin}` : 'what is no address'}`,
      );
    if (!keeps(response.status))
      throw refused(first, `it redirects with status ${response.status}, which would drop what is sent`);
    if (followed >= MAX_REDIRECTS) throw refused(first, `it redirects more than ${MAX_REDIRECTS} times`);
    url = next;
  }
}

/** Of an address its origin: the rest may hold a secret. */
function refused({ origin }: URL, reason: string): TroupeError {
  return new TroupeError('address_refused', `${origin} is not followed: ${reason}`, { origin, reason });
}

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
