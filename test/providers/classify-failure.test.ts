import { expect, test } from 'vitest';
import {
  parseRetryAfter,
  classifyFailure,
  type VendorError,
  vendorErrorOf,
} from '../../src/providers/classify-failure.ts';
import { backoffMs } from '../../src/providers/provider.ts';

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

const limited = (error: unknown, headers = new Headers(), status: number | undefined = 429) =>
  classifyFailure(vendorErrorOf(Object.assign(new Error('429'), { status, headers, error })), {
    opened: false,
    now: NOW,
  });
const google = (retryDelay: unknown, message = 'You exceeded your current quota.') => ({
  error: {
    code: 429,
    message,
    status: 'RESOURCE_EXHAUSTED',
    details: [
      { '@type': 'type.googleapis.com/google.rpc.QuotaFailure', violations: [] },
      { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay },
    ],
  },
});
const said = (message: string) => ({ error: { message } });

test.each<[string, unknown, number | undefined]>([
  ['OpenAI', said('Rate limit reached: Limit 3, Used 3, Requested 1. Please try again in 20s.'), 20_000],
  ['OpenAI in minutes', said('Rate limit reached on RPM: Limit 3. Please try again in 6m0s.'), 360_000],
  ['OpenAI in milliseconds', said('Please try again in 20ms.'), 20],
  ['OpenAI in fractions', said('Please try again in 1.3s.'), 1300],
  ['Groq', said('Limit 7000, Used 6148. Please try again in 1m0.363142857s. Visit the page.'), 60_364],
  ['Groq per day', said('Please try again in 7h33m12.5s.'), 27_192_500],
  ['Azure', said('Requests have exceeded token rate limit. Please retry after 26 seconds.'), 26_000],
  ['Azure, one second', said('Please retry after 1 second.'), 1000],
  ['Gemini in a list', [google('39s')], 39_000],
  ['Gemini as an object', google('39.5s'), 39_500],
  ['Gemini in words', google(undefined, 'Quota exceeded.\nPlease retry in 41.820516331s.'), 41_821],
  ['Vertex with seconds and nanos', google({ seconds: 12, nanos: 500_000_000 }), 12_500],
  ['OpenRouter', { error: { code: 429, message: 'limited', metadata: { retry_after_seconds: 9 } } }, 9000],
  [
    'OpenRouter with the headers of the limit',
    { error: { message: 'limited', metadata: { headers: { 'X-RateLimit-Reset': String(NOW + 5000) } } } },
    5000,
  ],
  [
    'OpenRouter with the text of the vendor',
    { error: { message: 'Provider returned error', metadata: { raw: JSON.stringify(google('17s')) } } },
    17_000,
  ],
  [
    'LiteLLM around Vertex',
    said('litellm.RateLimitError: VertexAIException - b\'{"error": {"details": [{"retryDelay": "33s"}]}}\''),
    33_000,
  ],
  ['LiteLLM with a date', said('Limit resets at: 2026-01-01 00:00:30 UTC'), 30_000],
  ['words with two units', said('Wait for 1 minute and 30 seconds.'), 90_000],
  ['words with hours', said('Try again in about 2 hours'), 7_200_000],
  ['the header in words', said('rate limited, Retry-After: 30'), 30_000],
  ['Django', { detail: 'Request was throttled. Expected available in 20 seconds.' }, 20_000],
  ['an error that is a text', { error: 'Too many requests, retry in 5 seconds' }, 5000],
  ['errors in a list', { errors: [{ code: 10_000, message: 'try again in 4 s' }] }, 4000],
  ['a field beside the error', { error: { message: 'slow down' }, retry_after: 3 }, 3000],
  ['a field in milliseconds', { error: { message: 'slow down', retryAfterMs: 1500 } }, 1500],
  ['no delay', said('Please try again later.'), undefined],
  ['a limit that is no delay', said('You may send 5 requests per 60 seconds. Please wait.'), undefined],
  ['a number of tries', said('retry 3 times'), undefined],
  ['a field that is no number', { error: { retry_after: 'soon' } }, undefined],
])('a delay in the body counts: %s', (_, body, ms) => {
  expect(limited(body)).toMatchObject({ code: 'provider_rate_limited' });
  expect(limited(body).retryAfterMs).toBe(ms);
});

test('a delay in the headers counts more than one in the body', () => {
  expect(limited(said('Please try again in 20ms.'), new Headers({ 'retry-after': '2' })).retryAfterMs).toBe(
    2000,
  );
  expect(limited(google('39s'), new Headers({ 'retry-after': '1m30s' })).retryAfterMs).toBe(90_000);
});

test('a model that is still loading names its time', () => {
  const body = { error: 'Model m is currently loading', estimated_time: 20.5 };
  expect(limited(body, undefined, 503)).toMatchObject({ isAway: true, retryAfterMs: 20_500 });
});

test.each<[string, unknown, string]>([
  ['429', { error: { code: 429, message: 'x' } }, 'provider_rate_limited'],
  ['429 as a text', { error: { code: '429', message: 'x' } }, 'provider_rate_limited'],
  ['401', { error: { code: 401, message: 'x' } }, 'provider_auth'],
  ['402', { error: { code: 402, message: 'x' } }, 'provider_quota'],
  ['503', { code: 503, message: 'x' }, 'provider_overloaded'],
  ['400 in a list', [{ error: { code: 400, message: 'x' } }], 'provider_invalid_request'],
  ['RESOURCE_EXHAUSTED', { error: { status: 'RESOURCE_EXHAUSTED' } }, 'provider_rate_limited'],
  ['UNAVAILABLE', [{ error: { status: 'UNAVAILABLE' } }], 'provider_overloaded'],
  ['a reason among the details', { error: { details: [{ reason: 'API_KEY_INVALID' }] } }, 'provider_auth'],
])('the code of an error within a stream is its status: %s', (_, error, code) => {
  const thrown = Object.assign(new Error('x'), { error });
  expect(classifyFailure(vendorErrorOf(thrown), { opened: true, now: NOW }).code).toBe(code);
});

test.each<[string, unknown, string]>([
  ['in a list', [{ error: { message: 'no' } }], '400 no'],
  ['of FastAPI', { detail: [{ loc: ['body'], msg: 'field required' }] }, '400 field required'],
  ['in words', { error: 'no' }, '400 no'],
  ['of several', { success: false, errors: [{ code: 7003, message: 'no' }] }, '400 no'],
  [
    'of the vendor behind OpenRouter',
    { error: { message: 'Provider returned error', code: 400, metadata: { raw: '{"error":"no"}' } } },
    '400 Provider returned error: {"error":"no"}',
  ],
  ['in a list in the error', { error: [{ message: 'no' }] }, '400 no'],
])('the words of an error are found: %s', (_, body, message) => {
  expect(limited(body, undefined, 400).message).toBe(message);
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
