import { createAnthropic } from '@ai-sdk/anthropic';
import { createGoogle } from '@ai-sdk/google';
import { createOpenAI } from '@ai-sdk/openai';
import type { ReplyLimitSettings } from '../../src/providers/reply-limits.ts';
import { boundedFetch } from '../../src/index.ts';
import {
  FAKE_USAGE,
  type FakeHandler,
  type FakeReply,
  pieces,
  sse,
  startFakeServer,
  type VendorFailure,
} from '../../packages/testing/src/fake-vendors.ts';

const apiKey = 'key-of-test';

/** What a program gives a vendor package. */
function options(baseURL: string, limits: ReplyLimitSettings) {
  return { baseURL, apiKey, fetch: boundedFetch(limits) };
}

export const chatModel = (url: string, limits: ReplyLimitSettings = {}) =>
  createOpenAI(options(url, limits)).chat('m');
export const responsesModel = (url: string, limits: ReplyLimitSettings = {}, id = 'm') =>
  createOpenAI(options(url, limits)).responses(id);
export const claudeModel = (url: string, limits: ReplyLimitSettings = {}, id = 'm') =>
  createAnthropic(options(`${url}/v1`, limits))(id);
export const geminiModel = (url: string, limits: ReplyLimitSettings = {}, id = 'm') =>
  createGoogle(options(url, limits))(id);

/** A fake of Google's generateContent. Its calls come whole. */
export function startFakeGemini(handler: FakeHandler = () => ({ text: 'ok' }), id = 'm') {
  return startFakeServer(
    {
      path: `/models/${id}:streamGenerateContent`,
      frames: geminiFrames,
      failure: geminiFailure,
      failureFrame: ({ body }) => sse(body),
    },
    handler,
  );
}

const STOPS = { end: 'STOP', calls: 'STOP', length: 'MAX_TOKENS', refusal: 'SAFETY' } as const;

function geminiFrames({
  text = '',
  reasoning = '',
  calls = [],
  chunk,
  usage = FAKE_USAGE,
  stop = 'end',
  model = 'm',
}: FakeReply) {
  const envelope = { responseId: 'resp-1', modelVersion: model };
  const frame = (part: object) =>
    sse({ ...envelope, candidates: [{ index: 0, content: { role: 'model', parts: [part] } }] });
  const content = [
    ...pieces(reasoning, chunk).map((piece) => frame({ text: piece, thought: true })),
    ...pieces(text, chunk).map((piece) => frame({ text: piece })),
    ...calls.map(({ name, args }) =>
      frame({
        functionCall: { name, args: JSON.parse(args) as object },
        ...(reasoning !== '' && { thoughtSignature: `sig-${name}` }),
      }),
    ),
  ];
  const usageMetadata = usage && {
    promptTokenCount: usage.input,
    candidatesTokenCount: usage.output - usage.reasoning,
    thoughtsTokenCount: usage.reasoning,
    cachedContentTokenCount: usage.cacheRead,
    totalTokenCount: usage.input + usage.output,
  };
  const end = {
    candidates: [{ index: 0, content: { role: 'model', parts: [] }, finishReason: STOPS[stop] }],
  };
  return { head: [], content, tail: [sse({ ...envelope, ...end, ...(usageMetadata && { usageMetadata }) })] };
}

const GEMINI_FAILURES: Partial<Record<VendorFailure, [status: number, name: string, message: string]>> = {
  provider_auth: [400, 'INVALID_ARGUMENT', 'API key not valid. Please pass a valid API key.'],
  provider_model_unknown: [404, 'NOT_FOUND', 'models/m is not found for API version v1beta.'],
  provider_invalid_request: [400, 'INVALID_ARGUMENT', 'Invalid value at contents[0].'],
  provider_rate_limited: [429, 'RESOURCE_EXHAUSTED', 'You exceeded your current quota.'],
  provider_overloaded: [503, 'UNAVAILABLE', 'The model is overloaded. Please try again later.'],
  context_overflow: [
    400,
    'INVALID_ARGUMENT',
    'The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).',
  ],
};

/** Google has no code of its own for an account without money, and refuses within answers. */
export function isGeminiScene(scene: FakeReply): boolean {
  const { error, usage, calls = [] } = scene;
  if (error && (error.code === 'provider_quota' || error.code === 'provider_refused')) return false;
  return !usage?.cacheWrite && calls.every(({ args }) => args.endsWith('}'));
}

function geminiFailure({ code, message: given }: NonNullable<FakeReply['error']>) {
  const [status, name, message] = GEMINI_FAILURES[code] ?? [
    500,
    'INTERNAL',
    'An internal error has occurred.',
  ];
  const details =
    code === 'provider_auth'
      ? [{ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: 'API_KEY_INVALID' }]
      : [];
  return { status, body: { error: { code: status, message: given ?? message, status: name, details } } };
}

export const vendorOfGemini = (url: string) => createGoogle(options(url, {}));
