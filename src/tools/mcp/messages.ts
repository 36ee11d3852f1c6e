/** Shorter values are words such as "1" or "prod", which any text may hold. */
const MIN_SECRET_LENGTH = 6;

/** Puts the names of variables in place of their values, as they are and as they stand in JSON. */
export function createRedactor(variables: Readonly<Record<string, string>>): (text: string) => string {
  const secrets = Object.entries(variables)
    .filter(([, value]) => value.length >= MIN_SECRET_LENGTH)
    .flatMap(([name, value]) =>
      [...new Set([value, JSON.stringify(value).slice(1, -1)])].map((form) => [name, form] as const),
    )
    // What contains another goes first, or a part of it would be left.
    .sort(([, a], [, b]) => b.length - a.length);
  return (text) => secrets.reduce((kept, [name, value]) => kept.replaceAll(value, () => `[${name}]`), text);
}

/** What an error says, and what its cause says: `fetch failed` alone tells nobody what to do. */
export function messageOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown);
  const { message, name, cause } = thrown;
  return cause instanceof Error && cause.message !== ''
    ? `${message || name}: ${cause.message}`
    : message || name;
}
