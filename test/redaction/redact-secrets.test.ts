import fc from 'fast-check';
import { expect, test } from 'vitest';
import { redactSecrets } from '../../src/index.ts';
import type { Author } from '../../src/index.ts';
import { cpuMsOf } from '../support/cpu-ms.ts';

const ANA: Author = { kind: 'user', id: 'u1', name: 'Ana' };
const WHERE = { kind: 'message', author: ANA } as const;
const KEY_BLOCK = '-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\nx8Yk\n-----END RSA PRIVATE KEY-----';
const JWT = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N';
/** Secrets of known shapes, joined from parts so that no scanner reports this file. */
const SECRETS: [string, string][] = [
  ['an OpenAI key', `sk-${'aB3'.repeat(10)}`],
  ['an Anthropic key', `sk-ant-api03-${'x9_'.repeat(12)}`],
  ['a GitHub token', `ghp_${'a1B2'.repeat(9)}`],
  ['a fine-grained GitHub token', `github_pat_${'a1B2'.repeat(9)}`],
  ['a GitLab token', `glpat-${'a1B2'.repeat(5)}`],
  ['an AWS key id', `AKIA${'ABCD1234'.repeat(2)}`],
  ['a Slack token', `xoxb-${'1234567890'.repeat(2)}-abc`],
  ['an npm token', `npm_${'a1B2'.repeat(9)}`],
  ['a payment key', `sk_live_${'a1B2'.repeat(6)}`],
  ['a web token', JWT],
  ['a private key', KEY_BLOCK],
];

test.each(SECRETS)('%s is hidden, the words around it are not', (_, secret) => {
  const redact = redactSecrets();
  for (const [before, after] of [
    ['use ', ' for this'],
    ['{"key":"', '"}'],
    ['KEY=', '\nNEXT=1'],
  ]) {
    const made = redact(`${before}${secret}${after}`, WHERE);
    expect(made).not.toContain(secret.slice(8, -8));
    expect(made.startsWith(before ?? '')).toBe(true);
    expect(made.endsWith(after ?? '')).toBe(true);
  }
});

test.each([
  ['postgres://ana:hunter2@db.local/x', 'postgres://ana:[password]@db.local/x'],
  ['https://:tok@en@host/path?q=1', 'https://:[password]@host/path?q=1'],
  ['Authorization: Bearer abcdefghijklmnop1234', 'Authorization: Bearer [key]'],
  [`${KEY_BLOCK.slice(0, 60)}`, '[private key]'],
])('%s becomes %s', (text, made) => {
  expect(redactSecrets()(text, WHERE)).toBe(made);
});

test.each([
  ['password: word', 'password: [password]'],
  ['Password : word, then more', 'Password : [password], then more'],
  ['the password=hunter2; go on', 'the password=[password]; go on'],
  ['DB_PASSWORD=hunter2\nNEXT=1', 'DB_PASSWORD=[password]\nNEXT=1'],
  ['{"password":"two words","a":1}', '{"password":"[password]","a":1}'],
  ["{ password: 'hunter2' }", "{ password: '[password]' }"],
  ['{\\"password\\":\\"hunter2\\"}', '{\\"password\\":\\"[password]\\"}'],
  ['?user=ana&password=hunter2&x=1', '?user=ana&password=[password]&x=1'],
  ['api_key: abc123', 'api_key: [password]'],
  ['API-Key=abc123', 'API-Key=[password]'],
  ['client_secret=abc123', 'client_secret=[password]'],
  ['aws_secret_access_key = abc123', 'aws_secret_access_key = [password]'],
  ['access_token: abc123', 'access_token: [password]'],
  ['Passwort: geheim', 'Passwort: [password]'],
  ['Mot de passe : secretissime', 'Mot de passe : [password]'],
  ['пароль: тайна', 'пароль: [password]'],
  ['passphrase := correct', 'passphrase := [password]'],
])('%s becomes %s', (text, made) => {
  const redact = redactSecrets();
  expect(redact(text, WHERE)).toBe(made);
  expect(redact(made, WHERE)).toBe(made);
});

test.each([
  ['my card is 4111 1111 1111 1111, thanks', 'my card is [card], thanks'],
  ['4111111111111111', '[card]'],
  ['5500-0000-0000-0004.', '[card].'],
  ['"3400 000000 00009"', '"[card]"'],
])('%s becomes %s', (text, made) => {
  expect(redactSecrets()(text, WHERE)).toBe(made);
});

test.each([
  'order 4111111111111112',
  'at 1764403200000 ms, or 1764403200000000000 ns',
  'call +4915112345678901',
  'id 4111111111111111abc, v4111111111111111, 4111111111111111.25',
  '2024 1130 1200 1500',
  'interface Login { password: string; token: number }',
  'password: ${PASSWORD}',
  'password: process.env.PASSWORD',
  'what is the password of the harbour office?',
  'tokens: 1200, keys: 3',
  'a plain sentence, with a colon: and an at@sign',
  'see https://example.org:8080/path@2 and mail bob@example.org',
  'the bearer of this letter',
  'sk-short and AKIA',
  'skip-this-very-long-hyphenated-identifier-of-mine',
])('"%s" stays as it is', (text) => {
  expect(redactSecrets()(text, WHERE)).toBe(text);
});

test('patterns of an application are hidden everywhere, with or without the flag g', () => {
  const redact = redactSecrets([/ACME-\d{4}/, /zebra/gi]);
  expect(redact('ACME-1234 ACME-5678 Zebra zebra', WHERE)).toBe('[hidden] [hidden] [hidden] [hidden]');
});

test('redacted text is unchanged by redaction, and equal texts have equal results', () => {
  const redact = redactSecrets([/q+/]);
  const parts = fc.constantFrom(
    ...SECRETS.map(([, secret]) => secret),
    'ftp://a:b@c',
    ' ',
    '"',
    'q',
    ':',
    '@',
    '/',
  );
  const texts = fc.array(fc.oneof(parts, fc.string())).map((list) => list.join(''));
  fc.assert(
    fc.property(texts, (text) => {
      const once = redact(text, WHERE);
      return redact(once, WHERE) === once && redactSecrets([/q+/])(text, WHERE) === once;
    }),
  );
});

test('a long text of half secrets is redacted quickly', async () => {
  const redact = redactSecrets();
  for (const piece of [
    'a://b:',
    '-----BEGIN PRIVATE KEY-----',
    'eyJ',
    'Bearer ',
    'sk-',
    'password: ',
    'password',
    'secret key ',
    '"password":"',
    'api_key\\\\',
  ]) {
    expect(await cpuMsOf(() => redact(piece.repeat(20_000), WHERE))).toBeLessThan(2_000);
  }
});
