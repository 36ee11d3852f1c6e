import { expect, test } from 'vitest';
import { backoffMs } from '../../src/providers/backoff.ts';
import {
  classifyFailure,
  parseRetryAfter,
  type VendorError,
  vendorErrorOf,
} from '../../src/providers/classify-failure.ts';

const NOW = Date.UTC(2026, 0, 1);
const classify = (error: Partial<VendorError>, opened = false) =>
  classifyFailure({ words: [], message: '', connection: false, ...error }, { opened, now: NOW }).code;

test.each<[string, Partial<VendorError>, string]>([
  [
    '403 of a project without the model',
    { status: 403, words: ['model_not_found'] },
    'provider_model_unknown',
  ],
  [
    '404 of Ollama',
    { status: 404, message: 'model "x" not found, try pulling it first' },
    'provider_model_unknown',
  ],
  [
    '400 of OpenRouter',
    { status: 400, message: 'deepseek-chat is not a valid model ID' },
    'provider_model_unknown',
  ],
  [
    '400 of DeepSeek',
    { status: 400, words: ['invalid_request_error'], message: 'Model Not Exist' },
    'provider_model_unknown',
  ],
  [
    '400 of Mistral',
    { status: 400, words: ['invalid_model'], message: 'Invalid model: x' },
    'provider_model_unknown',
  ],
  [
    'a model that lacks a feature',
    { status: 400, message: 'Encrypted content is not supported with this model.' },
    'provider_invalid_request',
  ],
  ['404 of anything else', { status: 404, message: 'Not Found' }, 'provider_invalid_request'],
  ['413', { status: 413, words: ['request_too_large'] }, 'context_overflow'],
  [
    'llama.cpp overflow',
    { status: 400, message: 'the request exceeds the available context size' },
    'context_overflow',
  ],
  [
    'Anthropic overflow with output',
    { status: 400, message: 'input length and `max_tokens` exceed context limit: 1 + 2 > 2' },
    'context_overflow',
  ],
  ['tokens per minute', { status: 429, message: 'too many tokens' }, 'provider_rate_limited'],
  [
    'too large an output',
    { status: 400, message: 'max_tokens is too large: 99999' },
    'provider_invalid_request',
  ],
  ['402', { status: 402 }, 'provider_quota'],
  ['409', { status: 409 }, 'provider_failed'],
  ['422', { status: 422 }, 'provider_invalid_request'],
  ['502', { status: 502, message: '<html>maximum context length</html>' }, 'provider_failed'],
  ['529', { status: 529 }, 'provider_overloaded'],
  ['an error event', { words: ['rate_limit_error'] }, 'provider_rate_limited'],
  ['nothing known', {}, 'provider_failed'],
])('%s', (_, error, code) => {
  expect(classify(error)).toBe(code);
});

test('a lost connection is a truncation once the answer has begun', () => {
  const refused = new Error('connect ECONNREFUSED 127.0.0.1:1');
  const error = vendorErrorOf(
    new TypeError('fetch failed', { cause: Object.assign(refused, { code: 'ECONNREFUSED' }) }),
  );
  expect(classify(error)).toBe('provider_unreachable');
  expect(classify(error, true)).toBe('provider_truncated');
  expect(error.message).toBe('fetch failed: connect ECONNREFUSED 127.0.0.1:1');
  expect(vendorErrorOf(new TypeError('x is not a function')).connection).toBe(false);
  expect(vendorErrorOf('text').message).toBe('text');
});

test('retry-after is read as milliseconds, seconds or a date', () => {
  const of = (headers: Record<string, string>) => parseRetryAfter(new Headers(headers), NOW);
  expect(of({ 'retry-after-ms': '1500', 'retry-after': '9' })).toBe(1500);
  expect(of({ 'retry-after': '2.5' })).toBe(2500);
  expect(of({ 'retry-after': new Date(NOW + 60_000).toUTCString() })).toBe(60_000);
  expect(of({ 'retry-after': new Date(NOW - 60_000).toUTCString() })).toBe(0);
  expect(of({ 'retry-after': 'soon' })).toBeUndefined();
  expect(of({})).toBeUndefined();
});

test('a delay named in the message counts if no header names one', () => {
  const limited = (message: string, headers = new Headers()) =>
    classifyFailure(
      { status: 429, words: [], message, connection: false, headers },
      { opened: false, now: NOW },
    ).retryAfterMs;
  expect(limited('Please try again in 1.3s.')).toBe(1300);
  expect(limited('Please try again in 20ms.')).toBe(20);
  expect(limited('Please try again in 20ms.', new Headers({ 'retry-after': '2' }))).toBe(2000);
  expect(limited('Please try again later.')).toBeUndefined();
});

test('the delay doubles up to its limit, and half of it is random', () => {
  const failure = { code: 'provider_overloaded', message: '' } as const;
  const waits = (random: number) =>
    [1, 2, 3, 7, 8, 50, 5000].map((tries) => backoffMs(failure, tries, () => random));
  expect(waits(0)).toEqual([250, 500, 1000, 15_000, 15_000, 15_000, 15_000]);
  expect(waits(1)).toEqual([500, 1000, 2000, 30_000, 30_000, 30_000, 30_000]);
});

test('a retry-after is the minimum delay, up to ten minutes', () => {
  const limited = (retryAfterMs: number) =>
    ({ code: 'provider_rate_limited', message: '', retryAfterMs }) as const;
  expect(backoffMs(limited(7000), 1, () => 0)).toBe(7000);
  expect(backoffMs(limited(7000), 1, () => 1)).toBe(7250);
  expect(backoffMs(limited(0), 1, () => 0)).toBe(250);
  expect(backoffMs(limited(86_400_000), 1, () => 0)).toBe(600_000);
});

test.each(['provider_auth', 'provider_quota', 'context_overflow', 'provider_refused'] as const)(
  '%s is not retried',
  (code) => {
    expect(backoffMs({ code, message: '', retryAfterMs: 10 }, 1, () => 0)).toBeNull();
  },
);

test.each([
  ['ECONNREFUSED', true],
  ['ECONNRESET', true],
  ['UND_ERR_SOCKET', true],
  ['ENOTFOUND', undefined],
  ['EAI_AGAIN', undefined],
  ['CERT_HAS_EXPIRED', undefined],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', undefined],
  ['ERR_TLS_CERT_ALTNAME_INVALID', undefined],
])('%s: whether the server may be restarting is %s', (code, isAway) => {
  const cause = Object.assign(new Error(code), { code });
  const thrown = new TypeError('fetch failed', { cause });
  const failure = classifyFailure(vendorErrorOf(thrown), { opened: false, now: NOW });
  expect(failure).toMatchObject({ code: 'provider_unreachable' });
  expect(failure.isAway).toBe(isAway);
  // An answer that began and broke off is retried as usual.
  expect(classifyFailure(vendorErrorOf(thrown), { opened: true, now: NOW }).isAway).toBe(undefined);
});

test('a call to an unavailable server is retried after fifteen seconds at the latest', () => {
  const away = { code: 'provider_unreachable', message: '', isAway: true } as const;
  expect(backoffMs(away, 1, () => 1)).toBe(500);
  expect(backoffMs(away, 40, () => 1)).toBe(15_000);
});
