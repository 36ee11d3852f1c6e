import type { RedactText } from '../../events/redaction.ts';
import { createRedact, type Redact } from '../../providers/redact.ts';
import * as z from 'zod';

const PRIVATE_KEY = /-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g;
/** The bounds keep the match linear in the length of the text. */
const URL_PASSWORD = /(\b[a-z][a-z0-9+.-]{0,30}:\/\/[^\s/:@]{0,256}:)[^\s/]+@/gi;
/**
 * A password or key after its name, as in settings, forms and JSON: `password: word`, `"api_key": "…"`,
 * `DB_PASSWORD=…`. Types and placeholders are not secrets. The bounds keep the match linear.
 */
const NAMED =
  /((?<!\p{L})(?:pass(?:word|wort|phrase|code|wd)|pwd|kennwort|contrase\u00f1a|mot de passe|senha|\u043f\u0430\u0440\u043e\u043b\u044c|\u5bc6\u7801|(?:(?:client|app|shared|webhook|signing)[_ -]?)?secret(?:[_ -]?(?:access[_ -]?)?key)?|(?:api|access|private|auth|account|encryption)[_ -]?key|(?:access|auth|refresh|api|session)[_ -]?token)\\{0,2}["'`]?\s{0,8}(?:=>|:=|[:=\uff1a](?![=>]))\s{0,8}\\{0,2})(?!["'`]?(?:\[|\$|(?:string|number|boolean|null|undefined|true|false|none|required|optional|process\.env\S{0,64})(?![\p{L}\d])))(?:(["'])[^"'\\\n]{1,256}|[^\s"'`\\,;&<>()[\]{}]{1,256})/giu;
/** Keys of GitLab, npm, Stripe, AWS sessions and Slack hooks. */
const TOKENS: readonly RegExp[] = [
  /\bglpat-[\w-]{16,}/g,
  /\bnpm_[A-Za-z0-9]{20,}/g,
  /\b(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,}/g,
  /\bASIA[0-9A-Z]{16}\b/g,
  /(?<=hooks\.slack\.com\/services\/)[\w/]{20,}/g,
];

/**
 * A JSON web token. The first group is the part of the word before the token: with it, the match fails once per word
 * instead of once per `eyJ`.
 */
const WEB_TOKEN = /(?<![\w-])(?=[\w-]+\.[\w-]{10,}\.)([\w-]*?)\beyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]*/g;

/** Digits of a payment card, together or in its printed groups. Only the check digit tells them from other numbers. */
const CARD =
  /(?<![\p{L}\d.+_-])[2-6](?:\d{12,18}|\d{3}([ -])\d{4}\1\d{4}\1\d{4}(?:\1\d{1,3})?|\d{3}([ -])\d{6}\2\d{5})(?![\p{L}\d_]|[.-]\d)/gu;

/** ISO/IEC 7812-1, annex B. */
function hasCheckDigit(number: string): boolean {
  const sum = Array.from(number.replace(/\D/g, ''), Number).reduceRight(
    ({ total, doubles }, digit) => {
      const value = digit * (doubles ? 2 : 1);
      return { total: total + (value > 9 ? value - 9 : value), doubles: !doubles };
    },
    { total: 0, doubles: false },
  );
  return sum.total % 10 === 0;
}

/** A replacement may leave text that looks like another secret, so redaction repeats until nothing changes, at most this often. */
const MOST_ROUNDS = 5;

/**
 * A `redact` for an agents file: hides API keys, private keys, card numbers, passwords in URLs or after their name, and
 * matches of `extra`. It cannot recognise secrets without a typical form, such as a password in a sentence.
 *
 *     export default defineTroupe({ agents, redact: redactSecrets([/\bACME-\d{8}\b/]) });
 */
export function redactSecrets(extra: readonly RegExp[] = []): RedactText {
  return hideForms(extra);
}

function hideForms(extra: readonly RegExp[]): Redact {
  const hideKeys = createRedact([]);
  const own = extra.map(({ source, flags }) => new RegExp(source, flags.includes('g') ? flags : `${flags}g`));
  function once(text: string): string {
    let clean = text;
    for (const pattern of own) clean = clean.replace(pattern, '[hidden]');
    clean = clean
      .replace(PRIVATE_KEY, '[private key]')
      .replace(URL_PASSWORD, '$1[password]@')
      .replace(WEB_TOKEN, '$1[key]')
      .replace(CARD, (number) => (hasCheckDigit(number) ? '[card]' : number));
    for (const token of TOKENS) clean = clean.replace(token, '[key]');
    return hideKeys(clean).replace(
      NAMED,
      (_, name: string, quote: string | undefined) => `${name}${quote ?? ''}[password]`,
    );
  }
  return function redact(text) {
    let clean = once(text);
    for (let round = 1, before = text; clean !== before && round < MOST_ROUNDS; round++) {
      before = clean;
      clean = once(before);
    }
    return clean;
  };
}

/** The function that `hideSecrets` of a definition applies to what leaves Troupe: it hides what `redactSecrets` hides. Null: none. */
export function hiddenIn({ hideSecrets = true }: { hideSecrets?: boolean | undefined }): Redact | null {
  return hideSecrets ? hideForms([]) : null;
}

/** A copy of plain data without secrets. A text under the name of a secret is hidden whatever it looks like. */
export function hideInData<T>(data: T, hide: Redact): T {
  const text = JSON.stringify(data, (name, part: unknown) => {
    if (typeof part !== 'string') return part;
    return `${name}: word`.search(NAMED) === -1 ? hide(part) : '[password]';
  });
  return JSON.parse(text) as T;
}

/** The setting `redact`: a function, so only an agents file that is code can have it. */
export const RedactSetting = z.custom<RedactText>(
  (value) => typeof value === 'function',
  'redact is a function (text, { kind, author }) => text, in an agents file that is code; see redactSecrets',
);
