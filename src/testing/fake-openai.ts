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

/** A fake of OpenAI's chat completions and embeddings; `url` is the base URL, including /v1. */
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

/** One vector per input, computed from its words. */
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

/** A failure in OpenAI's format, for all of its APIs. */
export function openAiFailure(error: NonNullable<FakeReply['error']>): FakeFailure {
  const [status, type, code, message] = FAILURES[error.code];
  return { status, body: { error: { message: error.message ?? message, type, param: null, code } } };
}

/** A fake of OpenAI's Responses API; `url` is the base URL, including /v1. */
export async function startFakeOpenAiResponses(
  handler: FakeHandler = () => ({ text: 'ok' }),
): Promise<FakeServer> {
  const server = await startFakeServer(
    {
      path: '/v1/responses',
      frames: responseFrames,
      failure: openAiFailure,
      failureFrame: ({ body }) => sse({ type: 'error', ...(body as object) }, 'error'),
    },
    handler,
  );
  return Object.assign(server, { url: `${server.url}/v1` });
}

const INCOMPLETE = { length: 'max_output_tokens', refusal: 'content_filter' } as const;

type Named = { type: string; [key: string]: unknown };

function responseFrames(reply: FakeReply, { number, body }: FakeRequest) {
  const { text = '', reasoning = '', calls = [], chunk, stop } = reply;
  const reason = stop === 'length' || stop === 'refusal' ? INCOMPLETE[stop] : null;
  const status = reason ? 'incomplete' : 'completed';
  let sequence = 0;
  const named = (data: Named) => sse({ ...data, sequence_number: sequence++ }, data.type);
  const response = {
    id: `resp_${number}`,
    object: 'response',
    created_at: 1_700_000_000,
    model: reply.model ?? (body as { model: string }).model,
    status: 'in_progress',
    error: null,
    incomplete_details: null,
    output: [] as object[],
    usage: null,
  };
  const head = [named({ type: 'response.created', response })];
  const content: string[] = [];
  const output: object[] = [];

  /** An item with its deltas. The frame that opens it is sent with the first delta, so `after` counts only visible ones. */
  function item(opened: object, finished: object, deltas: readonly Named[]): void {
    const at = { output_index: output.length };
    const open = named({ type: 'response.output_item.added', ...at, item: opened });
    const parts = deltas.map((delta) => named({ ...delta, ...at }));
    const closed = named({ type: 'response.output_item.done', ...at, item: finished });
    content.push(open + (parts[0] ?? ''), ...parts.slice(1));
    content.push((content.pop() ?? '') + closed);
    output.push(finished);
  }

  if (reasoning !== '') {
    const base = { type: 'reasoning', id: `rs_${number}` };
    const deltas = pieces(reasoning, chunk).map((delta) => ({
      type: 'response.reasoning_summary_text.delta',
      item_id: base.id,
      summary_index: 0,
      delta,
    }));
    const summary = [{ type: 'summary_text', text: reasoning }];
    item(
      { ...base, summary: [] },
      { ...base, summary, encrypted_content: `enc-${number}`, status: 'completed' },
      deltas,
    );
  }
  if (text !== '') {
    const base = { type: 'message', id: `msg_${number}`, role: 'assistant' };
    const deltas = pieces(text, chunk).map((delta) => ({
      type: 'response.output_text.delta',
      item_id: base.id,
      content_index: 0,
      delta,
    }));
    const said = [{ type: 'output_text', text, annotations: [] }];
    item({ ...base, status: 'in_progress', content: [] }, { ...base, status, content: said }, deltas);
  }
  for (const [i, { id = `call_${number}_${i}`, name, args }] of calls.entries()) {
    const base = { type: 'function_call', id: `fc_${number}_${i}`, call_id: id, name };
    const deltas = pieces(args, chunk).map((delta) => ({
      type: 'response.function_call_arguments.delta',
      item_id: base.id,
      delta,
    }));
    item({ ...base, arguments: '', status: 'in_progress' }, { ...base, arguments: args, status }, deltas);
  }
  const ended = { ...response, status, output, incomplete_details: reason ? { reason } : null };
  return {
    head,
    content,
    tail: [named({ type: `response.${status}`, response: { ...ended, usage: responseUsage(reply) } })],
  };
}

function responseUsage({ usage = FAKE_USAGE }: FakeReply) {
  return usage === null
    ? null
    : {
        input_tokens: usage.input,
        input_tokens_details: { cached_tokens: usage.cacheRead, cache_write_tokens: usage.cacheWrite },
        output_tokens: usage.output,
        output_tokens_details: { reasoning_tokens: usage.reasoning },
        total_tokens: usage.input + usage.output,
      };
}
