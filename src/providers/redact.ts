/** Patterns of API keys. The first group, if there is one, is kept. */
const KEYS: readonly RegExp[] = [
  /(?<![\w-])sk-[\w-]{16,}/g,
  /\b(Bearer\s+)[\w.~+/-]{16,}=*/gi,
  /\b(?:gh[a-z]|github_pat)_\w{20,}/g,
  /\bAKIA[0-9A-Z]{16}\b/g,
  /\bAIza[\w-]{30,}/g,
  /\bxox[a-z]-[\w-]{16,}/g,
];
const HIDDEN = '[key]';
/** Shorter values are placeholders such as `none`, which occur in ordinary texts. */
const LEAST_SECRET = 6;

export type Redact = (text: string) => string;

/** Hides these secrets and everything that looks like a key. Idempotent. */
export function createRedact(secrets: readonly (string | undefined)[]): Redact {
  const known = secrets
    .flatMap((secret) => secret?.trim() ?? [])
    .filter((secret) => secret.length >= LEAST_SECRET)
    // Longest first: a secret that contains another is hidden whole.
    .sort((a, b) => b.length - a.length);
  return function redact(text) {
    let clean = text;
    for (const secret of known) clean = clean.replaceAll(secret, HIDDEN);
    for (const key of KEYS)
      clean = clean.replace(key, (_, kept: unknown) => (typeof kept === 'string' ? kept : '') + HIDDEN);
    return clean;
  };
}

/** The part of an authorization header after the scheme: servers repeat it without the scheme. */
export function credentialOf(header: string): string | undefined {
  return /^(?:basic|bearer|token)\s+(\S+)$/i.exec(header)?.[1];
}

/** A copy of plain data with every text redacted. */
export function redactAll<T>(value: T, redact: Redact): T {
  return JSON.parse(
    JSON.stringify(value, (_, part: unknown) => (typeof part === 'string' ? redact(part) : part)),
  ) as T;
}
