import {
  FAKE_USAGE,
  type FakeHandler,
  type FakeReply,
  type FakeRequest,
  type FakeServer,
  pieces,
  sse,
  startFakeServer,
} from './fake-server.ts';
import { openAiFailure } from './fake-openai.ts';

/** OpenAI's Responses API; `url` is the base URL, with /v1. */
export async function startFakeOpenAiResponses(
  handler: FakeHandler = () => ({ text: 'ok' }),
): Promise<FakeServer> {
  const server = await startFakeServer(
    {
      path: '/v1/responses',
      responseFrames,
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

  /** An item with its deltas. The frame that opens it goes with the first, so that `after` counts what can be seen. */
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
    tail: [named({ type: `response.${status}`, response: { ...ended, usage: usageOf(reply) } })],
  };
}

function usageOf({ usage = FAKE_USAGE }: FakeReply) {
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
