/** A URL of MongoDB may name several hosts, which `URL` refuses. */
const PARTS = /^(?<server>[a-z+]+:\/\/[^/?]+)(?:\/(?<path>[^?]*))?(?:\?(?<query>.*))?$/;

/** The same servers and options, with another database. */
export function withDatabase(url: string, database: string): string {
  const { server = '', query } = PARTS.exec(url)?.groups ?? {};
  return `${server}/${database}${query === undefined ? '' : `?${query}`}`;
}

/** The options of the URL, and these where it does not name them. */
export function withOptions(url: string, options: Record<string, string>): string {
  const { server = '', path = '', query = '' } = PARTS.exec(url)?.groups ?? {};
  const given = new URLSearchParams(query);
  const missing = Object.entries(options).filter(([name]) => !given.has(name));
  const all = [query, ...missing.map(([name, value]) => `${name}=${value}`)].filter(Boolean);
  return `${server}/${path}?${all.join('&')}`;
}
