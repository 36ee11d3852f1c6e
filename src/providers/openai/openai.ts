import OpenAI from 'openai';
import { fetchOptions, serverOf, vendorFetch } from '../vendor-fetch.ts';
import { guardStream, type StreamWatch } from '../guard-stream.ts';
import { readResponseEvents } from './response-events.ts';
import { type ModelEvent, type ModelRequest, type Provider, STATELESS } from '../provider.ts';
import { replyLimits, type ReplyLimitSettings } from '../reply-limits.ts';
import { type ChatQuirks, quirksOf } from './quirks.ts';
import type { ImageRef, PromptMessage, Reasoning } from '../../events/index.ts';
import { fitArgs, fitCacheKey, fitCallId, fitToolName, parseArgs } from '../call-text.ts';
import { plainSchema } from '../plain-schema.ts';

export interface OpenAiOptions {
  /** Default https://api.openai.com/v1. */
  baseUrl?: string;
  apiKey: string;
  /** How much is taken of an answer, and for how long. */
  replyLimits?: ReplyLimitSettings;
}

const NAME = 'openai';

/** OpenAI's Responses API, without its memory: the log is the memory. */
export function createOpenAi(options: OpenAiOptions): Provider {
  const { baseUrl = 'https://api.openai.com/v1', apiKey } = options;
  const quirks = quirksOf(baseUrl);
  const limits = replyLimits(options.replyLimits);
  let client: Promise<OpenAI> | undefined;

  async function connect(): Promise<OpenAI> {
    const { OpenAI: Client } = await import('openai');
    return new Client({
      apiKey,
      baseURL: baseUrl,
      maxRetries: 0,
      timeout: limits.silenceMs,
      logLevel: 'off',
      fetch: vendorFetch(limits),
      fetchOptions: await fetchOptions(),
    });
  }

  async function* read(request: ModelRequest, watch: StreamWatch): AsyncGenerator<ModelEvent> {
    client ??= connect();
    const { responses } = await client;
    const events = await responses.create(responsesBody(request, NAME, quirks), { signal: watch.signal });
    watch.touch();
    yield* readResponseEvents(events, request, NAME, watch);
  }

  return {
    name: NAME,
    capabilities: { ...STATELESS, interleavedSystem: true, images: true },
    server: serverOf(baseUrl),
    stream: (request, { signal }) =>
      guardStream({
        request,
        signal,
        limits,
        read: (watch) => read(request, watch),
        secrets: [apiKey],
      }),
  };
}

type Body = OpenAI.Responses.ResponseCreateParamsStreaming;
type Item = OpenAI.Responses.ResponseInputItem;
type Phase = OpenAI.Responses.EasyInputMessage['phase'];

/** What of a step only the model that made it can use; kept as JSON in the signature of its reasoning. */
export interface SignedStep {
  /** Encrypted reasoning, each with the number of visible items (text, calls) that stood before it. */
  items: { at: number; item: OpenAI.Responses.ResponseReasoningItem }[];
  /** What kind of text the step's was; newer models want it back. */
  phase?: Phase;
}

const CALL_ID = /^[\s\S]{1,64}$/;
/** These do not reason, and refuse a request that asks for encrypted reasoning. */
const NOT_REASONING = /^(ft:)?(chatgpt-|gpt-[34]|gpt-5[\d.]*-chat)/;

/** The request body. Nothing is stored with the vendor, so the whole prompt goes with every request. */
export function responsesBody(
  request: ModelRequest,
  provider: string,
  { schemas }: Pick<ChatQuirks, 'schemas'>,
): Body {
  const shown = schemas === 'whole' ? (schema: Record<string, unknown>) => schema : plainSchema;
  const { model, messages, replySchema } = request;
  const begin = messages.findIndex(({ role }) => role !== 'system');
  const leading = messages.slice(0, begin < 0 ? messages.length : begin);
  const body: Body = {
    model,
    input: messages
      .slice(leading.length)
      .flatMap((message) => itemsOf(message, isOwn(message, model, provider), request.images)),
    stream: true,
    store: false,
    max_output_tokens: request.maxOutputTokens,
    prompt_cache_key: fitCacheKey(request.cacheKey),
  };
  if (leading.length > 0)
    body.instructions = leading.map(({ content }) => content.toWellFormed()).join('\n\n');
  if (!NOT_REASONING.test(model)) body.include = ['reasoning.encrypted_content'];
  if (request.tools.length > 0) {
    // Not strict: that asks of a schema what tools need not fulfil.
    body.tools = request.tools.map((tool) => ({
      type: 'function',
      ...tool,
      parameters: shown(tool.parameters),
      strict: false,
    }));
  }
  if (replySchema) {
    body.text = { format: { type: 'json_schema', name: 'reply', schema: shown(replySchema), strict: false } };
  }
  return body;
}

/** `type` stands on messages too, where OpenAI needs none: other servers tell items by it. */
function itemsOf(message: PromptMessage, signed: SignedStep | null, images: ModelRequest['images']): Item[] {
  const content = message.content.toWellFormed();
  switch (message.role) {
    case 'system':
      return [{ type: 'message', role: 'developer', content }];
    case 'user': {
      const shown = imageParts(message.images, images);
      return [
        {
          type: 'message',
          role: 'user',
          content: shown.length > 0 ? [...shown, { type: 'input_text', text: content }] : content,
        },
      ];
    }
    case 'tool':
      return [{ type: 'function_call_output', call_id: fitCallId(message.call, CALL_ID), output: content }];
    case 'assistant': {
      const visible: Item[] = (message.calls ?? []).map((call) => ({
        type: 'function_call',
        call_id: fitCallId(call.id, CALL_ID),
        name: fitToolName(call.name),
        arguments: fitArgs(call.args),
      }));
      if (content !== '') {
        const phase = signed?.phase;
        visible.unshift({ type: 'message', role: 'assistant', content, ...(phase ? { phase } : {}) });
      }
      return signed ? weave(visible, signed.items) : visible;
    }
  }
}

function imageParts(
  named: readonly ImageRef[] = [],
  images: ModelRequest['images'],
): OpenAI.Responses.ResponseInputImage[] {
  return named.flatMap(({ hash, mediaType }) => {
    const data = images?.get(hash);
    if (data === undefined) return [];
    return [{ type: 'input_image', image_url: `data:${mediaType};base64,${data}`, detail: 'auto' }];
  });
}

/** Reasoning belongs right before what it led to. */
function weave(visible: readonly Item[], items: SignedStep['items']): Item[] {
  const woven: Item[] = [];
  for (const [index, each] of visible.entries()) {
    woven.push(...items.filter(({ at }) => at === index).map(({ item }) => item), each);
  }
  return woven;
}

/** Reasoning is readable only for the model that encrypted it. */
function isOwn(message: PromptMessage, model: string, provider: string): SignedStep | null {
  if (message.role !== 'assistant' || !message.reasoning) return null;
  const { reasoning } = message;
  return reasoning.provider === provider && reasoning.model === model ? signedStep(reasoning) : null;
}

/** Null where the signature is not ours: a log may come from elsewhere. */
function signedStep({ signature = '' }: Reasoning): SignedStep | null {
  const step = parseArgs(signature) as Partial<SignedStep> | null;
  return Array.isArray(step?.items) ? (step as SignedStep) : null;
}
