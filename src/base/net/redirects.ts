import { TroupeError } from '../errors.ts';

const REDIRECTS: readonly number[] = [301, 302, 303, 307, 308];
const MAX_REDIRECTS = 5;

/**
 * `fetch` for requests that carry a prompt or a key: it follows redirects within the origin only, and only those that
 * keep method and body. Throws `address_refused`, with both origins, for all others. `send` sends one request.
 */
export async function fetchWithinOrigin(
  input: string | URL,
  init: RequestInit = {},
  send: (url: URL, init: RequestInit) => Promise<Response> = fetch,
): Promise<Response> {
  const first = new URL(input);
  const keeps = (status: number) => status === 307 || status === 308 || (init.method ?? 'GET') === 'GET';
  let url = first;
  for (let followed = 0; ; followed += 1) {
    const response = await send(url, { ...init, redirect: 'manual' });
    const location = REDIRECTS.includes(response.status) ? response.headers.get('location') : null;
    if (location === null) return response;
    // Frees the connection: an unread body would hold it until its end.
    response.body?.cancel().catch(() => undefined);
    const next = URL.parse(location, url.href);
    if (next?.origin !== first.origin)
      throw refused(
        first,
        `it redirects to ${next ? `another origin, ${next.origin}` : 'an invalid address'}`,
      );
    if (!keeps(response.status))
      throw refused(first, `it redirects with status ${response.status}, which would drop the body`);
    if (followed >= MAX_REDIRECTS) throw refused(first, `it redirects more than ${MAX_REDIRECTS} times`);
    url = next;
  }
}

/** Names only the origin: the rest of an address may hold a secret. */
function refused({ origin }: URL, reason: string): TroupeError {
  return new TroupeError('address_refused', `${origin} is not followed: ${reason}`, { origin, reason });
}

/** The only headers sent on to another origin: any other may be a secret. */
const PORTABLE_HEADERS: readonly string[] = ['accept', 'accept-language', 'user-agent'];

export interface Hop {
  url: URL;
  headers: Readonly<Record<string, string>>;
}

/** The next hop of a redirect, or the reason why it must not be followed; null if the response is no redirect. Pure. */
export function nextHop(
  hop: Hop,
  status: number,
  location: string | undefined,
): Hop | { refused: string } | null {
  if (!REDIRECTS.includes(status) || location === undefined) return null;
  const url = URL.parse(location, hop.url.href);
  if (!url) return { refused: 'it redirects to an invalid address' };
  if (hop.url.protocol === 'https:' && url.protocol === 'http:')
    return { refused: 'it redirects from https to http' };
  if (url.origin === hop.url.origin) return { url, headers: hop.headers };
  const portable = Object.entries(hop.headers).filter(([name]) => PORTABLE_HEADERS.includes(name));
  return { url, headers: Object.fromEntries(portable) };
}
