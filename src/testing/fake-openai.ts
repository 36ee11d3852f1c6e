import type { Usage } from '../events/index.ts';
import { fakeVector } from './embedder-conformance.ts';
import {
  FAKE_USAGE,
  type FakeFailure,
  type FakeHandler,
  type FakeReply,
  type FakeRequest,
  type FakeServer,
  pieces,
  sse,
  startFakeServer,
  type VendorFailure,
} from './fake-server.ts';

/** OpenAI's chat completions and embeddings; `url` is the base URL, with /v1. */
export async function startFakeOpenAi(handler: FakeHandler = () => ({ text: 'ok' })): Promise<FakeServer> {
  const server = await startFakeServer(
    {
      path: '/v1/chat/completions',
      frames,
      failure: openAiFailure,
      failureFrame: ({ body }) => sse(body),
      json: { '/v1/embeddings': embeddings },
    },
    handler,
  );
  return Object.assign(server, { url: `${server.url}/v1` });
}

/** One vector for each input, made of its words. */
function embeddings({ body }: FakeRequest) {
  const { model, input } = body as { model: string; input: string[] };
  const data = input.map((text, index) => ({ object: 'embedding', index, embedding: fakeVector(text) }));
  const tokens = input.reduce((sum, text) => sum + Math.ceil(text.length / 4), 0);
  return { object: 'list', model, data, usage: { prompt_tokens: tokens, total_tokens: tokens } };
}

const FINISH = { end: 'stop', calls: 'tool_calls', length: 'length', refusal: 'content_filter' } as const;

function frames(reply: FakeReply, request: FakeRequest) {
  const { text = '', reasoning = '', calls = [], chunk, usage = FAKE_USAGE } = reply;
  const stop = reply.stop ?? (calls.length > 0 ? 'calls' : 'end');
  const envelope = {
    id: `chatcmpl-${request.number}`,
    object: 'chat.completion.chunk',
    created: 1_700_000_000,
    model: reply.model ?? (request.body as { model: string }).model,
  };
  const frame = (delta: unknown, finish: string | null = null) =>
    sse({ ...envelope, choices: [{ index: 0, delta, finish_reason: finish }] });
  const content = [
    ...pieces(reasoning, chunk).map((piece) => frame({ reasoning_content: piece })),
    ...pieces(text, chunk).map((piece) => frame({ content: piece })),
  ];
  for (const [index, { id = `call_${request.number}_${index}`, name, args }] of calls.entries()) {
    content.push(frame({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] }));
    for (const piece of pieces(args, chunk)) {
      content.push(frame({ tool_calls: [{ index, function: { arguments: piece } }] }));
    }
  }
  const tail = [frame({}, FINISH[stop])];
  if (usage) tail.push(sse({ ...envelope, choices: [], usage: usageOf(usage) }));
  tail.push(sse('[DONE]'));
  return { head: [frame({ role: 'assistant', content: '' })], content, tail };
}

function usageOf(usage: Usage) {
  return {
    prompt_tokens: usage.input,
    completion_tokens: usage.output,
    total_tokens: usage.input + usage.output,
    prompt_tokens_details: { cached_tokens: usage.cacheRead, cache_write_tokens: usage.cacheWrite },
    completion_tokens_details: { reasoning_tokens: usage.reasoning },
  };
}

const FAILURES: Record<VendorFailure, [status: number, type: string, code: string | null, message: string]> =
  {
    provider_auth: [401, 'invalid_request_error', 'invalid_api_key', 'Incorrect API key provided.'],
    provider_quota: [429, 'insufficient_quota', 'insufficient_quota', 'You exceeded your current quota.'],
    provider_model_unknown: [
      404,
      'invalid_request_error',
      'model_not_found',
      'The model `m` does not exist.',
    ],
    provider_refused: [
      400,
      'invalid_request_error',
      'content_policy_violation',
      'Rejected by the safety system.',
    ],
    provider_invalid_request: [400, 'invalid_request_error', null, 'Invalid value for messages[0].'],
    provider_rate_limited: [429, 'requests', 'rate_limit_exceeded', 'Rate limit reached.'],
    provider_overloaded: [503, 'server_error', null, 'The engine is currently overloaded.'],
    provider_unreachable: [504, 'server_error', null, 'Gateway timeout.'],
    provider_truncated: [500, 'server_error', null, 'Truncated.'],
    provider_failed: [500, 'server_error', null, 'The server had an error.'],
    context_overflow: [
      400,
      'invalid_request_error',
      'context_length_exceeded',
      "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
    ],
  };

/** A failure in OpenAI's words, for all of its APIs. */
export function openAiFailure(error: NonNullable<FakeReply['error']>): FakeFailure {
  const [status, type, code, message] = FAILURES[error.code];
  return { status, body: { error: { message: error.message ?? message, type, param: null, code } } };
}
