import { below, pick, type Random } from '../../sim/random.ts';
import { checkReply } from '../../src/actors/turn/check-reply.ts';
import { ERROR_CODES, TroupeError } from '../../src/base/errors.ts';
import { Reasoning, ToolCall, Usage } from '../../src/events/index.ts';
import { createAnthropic } from '../../src/providers/anthropic/anthropic.ts';
import { createOpenAi } from '../../src/providers/openai/openai.ts';
import { createOpenAiCompatible } from '../../src/providers/openai/openai-compatible.ts';
import { createOpenAiEmbedder } from '../../src/providers/openai/client.ts';
import type { ModelEvent, Provider } from '../../src/providers/provider.ts';
import { sampleRequest } from '../../packages/testing/src/provider-conformance.ts';
import { mutate, mutateText } from '../mutate.ts';
import { nastyText } from '../nasty.ts';
import { Broken, type Target } from '../target.ts';
import { type Api, APIS, framesOf } from './model-frames.ts';

/**
 * A vendor that answers with arbitrary data, to the real adapters and their SDKs: damaged frames, pieces of any size,
 * bytes that are not text, absurd figures, streams without an end.
 * H1  A stream ends as the port requires; failures carry a known code, and never `internal`.
 * H2  The output can be stored: texts, calls and figures fit the schemas of events, and the limits.
 * H3  The requirements for an agent's reply are checked for every answer without an error.
 */
export interface ModelInput {
  api: Api;
  status: number;
  /** The body as latin1: each character is a byte. */
  body: string;
  /** Bytes per piece. */
  piece: number;
}

const LIMITS = {
  eventBytes: 4_096,
  receivedBytes: 32_768,
  textBytes: 2_048,
  reasoningBytes: 2_048,
  argumentBytes: 2_048,
  calls: 8,
} as const;
const LONGEST = 48_000;
const ORDER = /^start( (text|thinking|reasoning|calling|call))* (done|failed)$/;
const REPLY = {
  schema: {},
  check: (value: unknown) => Promise.resolve({ data: value }),
};

export function hostileModelTarget(): Target<ModelInput> {
  const options = { baseUrl: 'http://127.0.0.1:9/v1', apiKey: 'key-of-fuzz', replyLimits: LIMITS };
  const providers: Record<Exclude<Api, 'embeddings'>, Provider> = {
    chat: createOpenAiCompatible(options),
    responses: createOpenAi(options),
    messages: createAnthropic(options),
  };
  const embedder = createOpenAiEmbedder({ ...options, model: 'm' });

  return {
    name: 'hostile-model',
    keepKeys: true,
    make: makeInput,
    async run(input) {
      const real = globalThis.fetch;
      globalThis.fetch = answering(input, real);
      try {
        return await ask(input);
      } finally {
        globalThis.fetch = real;
      }
    },
    async close() {
      await Promise.all(Object.values(providers).map(async (provider) => provider.close?.()));
    },
  };

  async function ask(input: ModelInput): Promise<string> {
    if (input.api === 'embeddings') {
      const { signal } = new AbortController();
      return embedder.embed(['x', 'y'], { signal }).then(() => 'accepted', codeOf);
    }
    const events: ModelEvent[] = [];
    const { signal } = new AbortController();
    for await (const event of providers[input.api].stream(sampleRequest(), { signal })) events.push(event);
    return checkEvents(events);
  }
}

/**
 * Sits between the adapters' own guard around fetch and their SDKs, for one input. A target that was created but
 * never closed must not leave its `fetch` to other tests in the process.
 */
function answering(input: ModelInput, real: typeof fetch): typeof fetch {
  return (asked, init) => {
    const { href } = new URL(asked instanceof Request ? asked.url : asked);
    return href.startsWith('data:') ? real(asked, init) : Promise.resolve(responseOf(input));
  };
}

function codeOf(thrown: unknown): string {
  const isNamed = thrown instanceof TroupeError && /^(provider_|context_overflow$)/.test(thrown.code);
  if (!isNamed) throw thrown;
  return thrown.code;
}

async function checkEvents(events: readonly ModelEvent[]): Promise<string> {
  const order = events.map(({ type }) => type).join(' ');
  if (!ORDER.test(order)) throw new Broken(`events in no legal order: ${order.slice(0, 200)}`);
  let text = '';
  let thought = '';
  let written = '';
  const calls: ToolCall[] = [];
  for (const event of events) {
    if (event.type === 'thinking') thought += checkText(event.delta);
    if (event.type === 'calling') written += checkText(event.delta);
    if (event.type === 'text') text += checkText(event.delta);
    if (event.type === 'reasoning') Reasoning.parse(event.reasoning);
    if (event.type === 'call') calls.push(ToolCall.parse(event.call));
  }
  const isTooMuch = (said: string, most: number) => Buffer.byteLength(said) > most + LIMITS.eventBytes;
  if (
    isTooMuch(text, LIMITS.textBytes) ||
    isTooMuch(thought, LIMITS.reasoningBytes) ||
    isTooMuch(written, LIMITS.argumentBytes) ||
    calls.length > LIMITS.calls
  )
    throw new Broken('more was given than there may be');
  const last = events.at(-1);
  if (last?.type === 'failed') {
    const { code, message } = last.error;
    if (code === ('internal' as string) || !ERROR_CODES.includes(code)) throw new Broken(`failed as ${code}`);
    if (message === '' || message.length > 4_096) throw new Broken('a failure says nothing, or too much');
    return code;
  }
  if (last?.type !== 'done') throw new Broken('no end');
  const usage = Usage.parse(last.usage);
  if (usage.cacheRead + usage.cacheWrite > usage.input) throw new Broken('more from a cache than there was');
  const { stop } = last;
  await checkReply(REPLY, { kind: 'answered', answer: { text, calls, stop, usage } });
  return 'accepted';
}

function checkText(delta: unknown): string {
  if (typeof delta !== 'string') throw new Broken(`a text is ${typeof delta}`);
  return delta;
}

function responseOf({ api, status, body, piece }: ModelInput): Response {
  const bytes = Buffer.from(body, 'latin1');
  const size = Math.max(1, piece);
  let at = 0;
  const stream = new ReadableStream<Uint8Array>({
    pull(controller) {
      if (at >= bytes.length) return controller.close();
      controller.enqueue(new Uint8Array(bytes.subarray(at, at + size)));
      at += size;
    },
  });
  const type = api === 'embeddings' ? 'application/json' : 'text/event-stream';
  return new Response(stream, { status, headers: { 'content-type': type } });
}

const STATUSES = [400, 401, 404, 413, 429, 500, 503, 529];

function makeInput(random: Random): ModelInput {
  const api = pick(random, APIS);
  const frames = framesOf(api, random).map((frame) => (random() < 0.12 ? mutate(random, frame) : frame));
  let parts = frames.map((frame) => written(random, api, frame));
  if (random() < 0.1) parts = parts.filter(() => random() < 0.8);
  if (random() < 0.05) parts.splice(below(random, parts.length + 1), 0, endless(random));
  if (api === 'chat' && random() < 0.8) parts.push('data: [DONE]\n\n');
  let text = parts.join('');
  if (random() < 0.15) text = mutateText(random, text);
  if (random() < 0.05) text = text.replaceAll('\n', pick(random, ['\r', '\r\n', '\n\n', '']));
  const bytes = Buffer.from(text.slice(0, LONGEST));
  // Bytes that are not valid UTF-8.
  if (random() < 0.1 && bytes.length > 0) bytes[below(random, bytes.length)] = 128 + below(random, 128);
  return {
    api,
    status: random() < 0.93 ? 200 : pick(random, STATUSES),
    body: bytes.toString('latin1'),
    piece: pick(random, [1_000_000, 4_096, 61, 7]),
  };
}

function written(random: Random, api: Api, frame: unknown): string {
  const json = JSON.stringify(frame) ?? 'null';
  if (api === 'embeddings') return json;
  const { type } = (frame ?? {}) as { type?: unknown };
  const name = api === 'messages' && typeof type === 'string' ? `event: ${type}\n` : '';
  const lines = random() < 0.02 ? `: ${nastyText(random)}\n` : '';
  return `${lines}${name}data: ${json}\n\n`;
}

function endless(random: Random): string {
  const unit = pick(random, ['data: {"a":"', 'x', 'data: 1\n', ': no\n\n', '[', '\r', 'event: error\n']);
  return unit.repeat(Math.ceil(pick(random, [3_000, 20_000]) / unit.length));
}
