/** Shorter values, such as "1" or "prod", occur in any text. */
const MIN_SECRET_LENGTH = 6;

/** Replaces the values of variables by their names, both as they are and as they stand in JSON. */
export function createRedactor(variables: Readonly<Record<string, string>>): (text: string) => string {
  const secrets = Object.entries(variables)
    .filter(([, value]) => value.length >= MIN_SECRET_LENGTH)
    .flatMap(([name, value]) =>
      [...new Set([value, JSON.stringify(value).slice(1, -1)])].map((form) => [name, form] as const),
    )
    // Longest first: a value that contains another would otherwise be replaced only in part.
    .sort(([, a], [, b]) => b.length - a.length);
  return (text) => secrets.reduce((kept, [name, value]) => kept.replaceAll(value, () => `[${name}]`), text);
}

/** An error's message with that of its cause: `fetch failed` alone explains nothing. */
export function messageOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown);
  const { message, name, cause } = thrown;
  return cause instanceof Error && cause.message !== ''
    ? `${message || name}: ${cause.message}`
    : message || name;
}

/** A server failed when it was asked for the newest revision of the protocol, as old servers do in many ways. */
export class RefusedProbe extends Error {}

export function isOfProbe(error: unknown): error is Error {
  return error instanceof Error && error.message.startsWith('Version negotiation');
}
