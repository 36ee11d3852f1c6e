import { createRedact, type Redact } from '../providers/redact.ts';

/**
 * User and password before the host of any URL; those with raw marks in them are known by value. Bounded, so that a long
 * text without any costs no more than its length.
 */
const IN_URLS = /\b([a-z][a-z0-9+.-]{0,30}:\/\/)[^\s/@"'<>]*@/gi;
const IN_QUERIES = /([?&](?:key|api_?key|access_?token|token|secret|password)=)([^&\s"'#]+)/gi;
/** As headers are written, and as they stand in JSON. */
const IN_HEADERS =
  /\b((?:proxy-)?authorization|x-api-key|api-key|cookie)(["']?\s*[:=]\s*["']?)(?:(?:basic|bearer)\s+)?[^\s"',;]+/gi;

/**
 * Hides secrets from lines and spans: values of these variables, what looks like a key, headers that authorize, and what
 * stands before the host of a URL.
 */
export function hideSecrets(
  secrets: readonly (string | undefined)[],
  urls: readonly (string | undefined)[],
): Redact {
  const redact = createRedact([...secrets, ...urls.flatMap((url) => credentialsIn(url ?? ''))]);
  return (text) =>
    redact(text)
      .replace(IN_URLS, '$1[key]@')
      .replace(IN_QUERIES, '$1[key]')
      .replace(IN_HEADERS, (_, name: string, mark: string) => `${name}${mark}[key]`);
}

/** As written and as they are meant: before the host, and in the query, where bunker URLs have them. */
export function credentialsIn(url: string): string[] {
  const inQuery = [...url.matchAll(IN_QUERIES)].map(([, , value = '']) => value);
  return [...beforeHost(url), ...inQuery.flatMap((value) => [value, decoded(value)])];
}

/** By hand: lists of hosts are no URLs to a parser. */
function beforeHost(url: string): string[] {
  const start = url.indexOf('://') + 3;
  const end = url.lastIndexOf('@');
  if (start < 3 || end < start) return [];
  const both = url.slice(start, end);
  const password = both.slice(both.indexOf(':') + 1);
  return [both, password, decoded(password)];
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
