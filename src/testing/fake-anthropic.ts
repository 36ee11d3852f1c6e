import {
  FAKE_USAGE,
  type FakeHandler,
  type FakeReply,
  type FakeRequest,
  type FakeServer,
  pieces,
  sse,
  startFakeServer,
  type VendorFailure,
} from './fake-server.ts';

/** A fake of Anthropic's messages API. */
export function startFakeAnthropic(handler: FakeHandler = () => ({ text: 'ok' })): Promise<FakeServer> {
  return startFakeServer(
    { path: '/v1/messages', frames, failure, failureFrame: ({ body }) => sse(body, 'error') },
    handler,
  );
}

const STOP = { end: 'end_turn', calls: 'tool_use', length: 'max_tokens', refusal: 'refusal' } as const;

function frames(reply: FakeReply, request: FakeRequest) {
  const { text = '', reasoning = '', calls = [], chunk, usage: given } = reply;
  const usage = given ?? (given === null ? { ...FAKE_USAGE, input: 0, output: 0 } : FAKE_USAGE);
  const stop = reply.stop ?? (calls.length > 0 ? 'calls' : 'end');
  const named = (data: { type: string; [key: string]: unknown }) => sse(data, data.type);
  const head = [
    named({
      type: 'message_start',
      message: {
        id: `msg_${request.number}`,
        type: 'message',
        role: 'assistant',
        model: reply.model ?? (request.body as { model: string }).model,
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage: {
          input_tokens: usage.input - usage.cacheRead - usage.cacheWrite,
          cache_read_input_tokens: usage.cacheRead,
          cache_creation_input_tokens: usage.cacheWrite,
          output_tokens: usage.output > 0 ? 1 : 0,
        },
      },
    }),
    named({ type: 'ping' }),
  ];
  const content: string[] = [];
  let index = 0;
  const block = (start: unknown, deltas: readonly unknown[]) => {
    // The frame that opens a block is sent with its first delta, so `after` counts only visible deltas.
    const open = named({ type: 'content_block_start', index, content_block: start });
    const parts = deltas.map((delta) => named({ type: 'content_block_delta', index, delta }));
    const closed = named({ type: 'content_block_stop', index });
    content.push(open + (parts[0] ?? ''), ...parts.slice(1));
    content.push((content.pop() ?? '') + closed);
    index += 1;
  };
  if (reasoning !== '') {
    const deltas = pieces(reasoning, chunk).map((thinking) => ({ type: 'thinking_delta', thinking }));
    const signature = { type: 'signature_delta', signature: `sig-${request.number}` };
    block({ type: 'thinking', thinking: '', signature: '' }, [...deltas, signature]);
  }
  if (text !== '') {
    const deltas = pieces(text, chunk).map((piece) => ({ type: 'text_delta', text: piece }));
    block({ type: 'text', text: '' }, deltas);
  }
  for (const [i, { id = `toolu_${request.number}_${i}`, name, args }] of calls.entries()) {
    const deltas = pieces(args, chunk).map((partial_json) => ({ type: 'input_json_delta', partial_json }));
    block({ type: 'tool_use', id, name, input: {} }, [
      { type: 'input_json_delta', partial_json: '' },
      ...deltas,
    ]);
  }
  const delta = { stop_reason: STOP[stop], stop_sequence: null };
  const output = { output_tokens: usage.output, output_tokens_details: { thinking_tokens: usage.reasoning } };
  const tail = [named({ type: 'message_delta', delta, usage: output }), named({ type: 'message_stop' })];
  return { head, content, tail };
}

const FAILURES: Record<VendorFailure, [status: number, type: string, message: string]> = {
  provider_auth: [401, 'authentication_error', 'invalid API key'],
  provider_quota: [
    400,
    'invalid_request_error',
    'Your credit balance is too low to access the Anthropic API.',
  ],
  provider_model_unknown: [404, 'not_found_error', 'model: m'],
  provider_refused: [400, 'invalid_request_error', 'Output blocked by content filtering policy'],
  provider_invalid_request: [400, 'invalid_request_error', 'messages.0.content: Field required'],
  provider_rate_limited: [429, 'rate_limit_error', 'This request would exceed the rate limit.'],
  provider_overloaded: [529, 'overloaded_error', 'Overloaded'],
  provider_unreachable: [504, 'timeout_error', 'Gateway timeout'],
  provider_truncated: [500, 'api_error', 'Truncated'],
  provider_failed: [500, 'api_error', 'Internal server error'],
  context_overflow: [400, 'invalid_request_error', 'prompt is too long: 210000 tokens > 200000 maximum'],
};

function failure(error: NonNullable<FakeReply['error']>) {
  const [status, type, message] = FAILURES[error.code];
  const body = {
    type: 'error',
    error: { type, message: error.message ?? message },
    request_id: 'req_fake',
  };
  return { status, body };
}
