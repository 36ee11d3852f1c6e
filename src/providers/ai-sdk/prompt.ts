import type {
  LanguageModelV4CallOptions,
  LanguageModelV4FilePart,
  LanguageModelV4Message,
  LanguageModelV4Prompt,
  LanguageModelV4TextPart,
  JSONObject,
} from '@ai-sdk/provider';
import type { PromptMessage, Reasoning } from '../../events/index.ts';
import { fitCallId, fitToolName, parseArgs, shownImages } from '../call-text.ts';
import { appendSchema, shownSchema, type SchemaForm } from '../plain-schema.ts';
import type { ModelRequest } from '../provider.ts';
import type { MarkFamily } from '../template-marks.ts';
import type { AiSdkModel } from '../ai-sdk-model.ts';
import { COMMON_KEYS, PLAIN_TOOLS, type ToolRules, wholeToolSchema } from '../tool-schema.ts';

type Assistant = Extract<LanguageModelV4Message, { role: 'assistant' }>;
type AssistantPart = Assistant['content'][number];
type Schema = NonNullable<LanguageModelV4CallOptions['tools']>[number] & { type: 'function' };

/** The options of a call that depend on the conversation. */
export function callOptions(
  request: ModelRequest,
  { provider, traits }: { provider: string; traits: VendorTraits },
): LanguageModelV4CallOptions {
  const { replySchema: schema, tools, maxOutputTokens } = request;
  const inWords = schema !== undefined && tools.length > 0 && traits.replyOrTools;
  const messages = inWords ? appendSchema(request.messages, schema) : request.messages;
  return {
    prompt: promptOf({ ...request, messages }, provider, traits),
    maxOutputTokens,
    ...(tools.length > 0 && {
      tools: tools.map(({ name, description, parameters }) => ({
        type: 'function' as const,
        name,
        description,
        inputSchema: { type: 'object', ...parameters } as Schema['inputSchema'],
      })),
      toolChoice: { type: 'auto' as const },
    }),
    ...(schema &&
      !inWords && {
        responseFormat: {
          type: 'json' as const,
          name: 'reply',
          schema: shownSchema(schema, traits.schemas),
        },
      }),
  };
}

const MAX_BREAKPOINTS = 4;

function promptOf(
  request: ModelRequest,
  provider: string,
  { cacheMark, callIds }: VendorTraits,
): LanguageModelV4Prompt {
  const prompt: LanguageModelV4Prompt = [];
  /** For each message its index in `prompt`. Several messages may share one index. */
  const places: number[] = [];
  for (const message of request.messages) {
    const sent = messageOf(message, request, { provider, callIds });
    const last = prompt.at(-1);
    // The results of one answer's calls go into one message.
    if (sent?.role === 'tool' && last?.role === 'tool') last.content.push(...sent.content);
    else if (sent) prompt.push(sent);
    places.push(prompt.length - 1);
  }
  if (!cacheMark || request.breakpoints.length === 0) return prompt;
  const system = prompt.findLastIndex(({ role }) => role === 'system');
  const latest = request.breakpoints.toSorted((a, b) => b - a).map((index) => places[index] ?? -1);
  const marked = [...new Set([system, ...latest])].filter((place) => place >= 0).slice(0, MAX_BREAKPOINTS);
  for (const place of marked) {
    const message = prompt[place];
    if (message) message.providerOptions = cacheMark;
  }
  return prompt;
}

/** Null for an empty message, which vendors refuse. */
function messageOf(
  message: PromptMessage,
  { model, images }: ModelRequest,
  { provider, callIds }: Pick<VendorTraits, 'callIds'> & { provider: string },
): LanguageModelV4Message | null {
  const content = message.content.toWellFormed();
  switch (message.role) {
    case 'system':
      return content.trim() === '' ? null : { role: 'system', content };
    case 'user': {
      const parts: (LanguageModelV4TextPart | LanguageModelV4FilePart)[] = shownImages(
        message.images,
        images,
      ).map(({ mediaType, data }) => ({ type: 'file', mediaType, data: { type: 'data', data } }));
      if (content.trim() !== '') parts.push({ type: 'text', text: content });
      return parts.length === 0 ? null : { role: 'user', content: parts };
    }
    case 'tool': {
      const output = { type: message.failed ? ('error-text' as const) : ('text' as const), value: content };
      const toolCallId = fitCallId(message.call, callIds);
      return {
        role: 'tool',
        content: [{ type: 'tool-result', toolCallId, toolName: fitToolName(message.name), output }],
      };
    }
    case 'assistant': {
      const { reasoning } = message;
      const isOwn = reasoning?.provider === provider && reasoning.model === model;
      const parts = assistantParts(
        message,
        isOwn ? signedParts(reasoning) : { thoughts: [], calls: {} },
        callIds,
      );
      return parts.length === 0 ? null : { role: 'assistant', content: parts };
    }
  }
}

/** Reasoning goes back to its place between text and calls: vendors check the order. */
function assistantParts(
  { content, calls = [] }: Extract<PromptMessage, { role: 'assistant' }>,
  signed: SignedParts,
  callIds: RegExp,
): AssistantPart[] {
  const visible: AssistantPart[] = [];
  if (content.trim() !== '')
    visible.push({ type: 'text', text: content.toWellFormed(), ...kept(signed.text) });
  for (const { id, name, args } of calls) {
    const input = parseArgs(args.toWellFormed()) ?? {};
    visible.push({
      type: 'tool-call',
      toolCallId: fitCallId(id, callIds),
      toolName: fitToolName(name),
      input,
      ...kept(signed.calls[id]),
    });
  }
  const last = Math.max(0, visible.length - 1);
  const placed = signed.thoughts.map(({ at = 0, text, metadata }) => ({
    at: Math.min(at, last),
    part: { type: 'reasoning' as const, text: text.toWellFormed(), ...kept(metadata) },
  }));
  const before = (index: number) => placed.filter(({ at }) => at === index).map(({ part }) => part);
  if (visible.length === 0) return before(0);
  return visible.flatMap((part, index) => [...before(index), part]);
}

function kept(metadata: SignedParts['text']): { providerOptions?: NonNullable<SignedParts['text']> } {
  return metadata ? { providerOptions: metadata } : {};
}

/** Differences of vendors that the AI SDK leaves to its callers. */
interface VendorTraits {
  /** Options of a message after which the prompt is cached. */
  cacheMark?: PartMetadata;
  /** Options of every call, unless the agent sets others. */
  options: PartMetadata;
  /** The vendor refuses a reply schema together with tools. */
  replyOrTools: boolean;
  /** Form of the reply schemas. */
  schemas: SchemaForm;
  tools: ToolRules;
  templateMarks: readonly MarkFamily[];
  /** Ids of calls that the vendor accepts. Ids that the same model made go back unchanged. */
  callIds: RegExp;
}

const EPHEMERAL = { cacheControl: { type: 'ephemeral' } };
const CACHE_MARK = { anthropic: EPHEMERAL, bedrock: { cachePoint: { type: 'default' } } };
/** Vendors whose packages or servers accept any schema. Other names may stand for servers such as llama.cpp. */
const WHOLE_SCHEMAS = /^(?:openai|azure|anthropic|google|vertex|amazon-bedrock|bedrock|gateway)\b/;
/** Nothing is stored with the vendor, because the log is the memory. Reply schemas may allow further fields. */
const OPENAI = { store: false, strictJsonSchema: false };

/** The rules of Anthropic, the strictest of these vendors: any of their packages may reach its models. */
const WHOLE_TOOLS: ToolRules = { shape: wholeToolSchema, keys: COMMON_KEYS };
const CLAUDE_IDS = /^[A-Za-z0-9_-]{1,64}$/;
const OPENAI_IDS = /^[\s\S]{1,40}$/;
const ANY_ID = /^/;

export function traitsOf({ provider, modelId }: Pick<AiSdkModel, 'provider' | 'modelId'>): VendorTraits {
  const isClaude = /anthropic|claude/.test(`${provider} ${modelId}`);
  const isOpenAi = /^(?:openai|azure)\b/.test(provider);
  return {
    ...((isClaude || /bedrock/.test(provider)) && { cacheMark: CACHE_MARK }),
    options: isOpenAi ? { openai: OPENAI, azure: OPENAI } : {},
    schemas: WHOLE_SCHEMAS.test(provider) ? 'whole' : 'plain',
    tools: isClaude || WHOLE_SCHEMAS.test(provider) ? WHOLE_TOOLS : PLAIN_TOOLS,
    replyOrTools: provider.startsWith('google') && /gemini-(?:1|2)/.test(modelId),
    callIds: isClaude || /bedrock/.test(provider) ? CLAUDE_IDS : isOpenAi ? OPENAI_IDS : ANY_ID,
    templateMarks: isClaude ? ['speakers', 'clients'] : isOpenAi ? ['tokens'] : ['tokens', 'templates'],
  };
}

/** What a vendor wants back with a part of its answer (signatures, encrypted reasoning, ids), by the vendor's name. */
export type PartMetadata = Record<string, JSONObject>;

/** A part of reasoning. `at`: the number of visible parts (text, calls) before it. */
export interface Thought {
  text: string;
  at?: number;
  metadata?: PartMetadata;
}

/** All that a vendor wants back with an answer. The log keeps it as the signature of the answer's reasoning. */
interface SignedParts {
  thoughts: readonly Thought[];
  text?: PartMetadata;
  /** By the ids of the calls. */
  calls: Readonly<Record<string, PartMetadata>>;
}

const PREFIX = 'ai-sdk:';

/** Null if there is nothing to keep. */
export function signedReasoning(
  parts: SignedParts,
  { provider, model }: Pick<Reasoning, 'provider' | 'model'>,
): Reasoning | null {
  const { thoughts, text, calls } = parts;
  const isSigned = [text ?? {}, ...Object.values(calls)].some(hasMore);
  if (thoughts.length === 0 && !isSigned) return null;
  const said = thoughts.map((thought) => thought.text).filter((each) => each !== '');
  const signature = PREFIX + JSON.stringify(parts);
  return { text: said.join('\n\n'), signature, provider, model };
}

/** Whether there is more than an item's id, which means nothing to a vendor that stores no items. */
function hasMore(metadata: PartMetadata): boolean {
  return Object.values(metadata).some((fields) => Object.keys(fields).some((field) => field !== 'itemId'));
}

/** Without parts of ours in the signature, as in an imported log, the reasoning has only its text. */
function signedParts({ text, signature = '' }: Reasoning): SignedParts {
  const written = signature.startsWith(PREFIX) ? signature.slice(PREFIX.length) : '';
  const { thoughts, calls, ...more } = (parseArgs(written) ?? {}) as Partial<SignedParts>;
  if (Array.isArray(thoughts) && calls) return { thoughts: thoughts as Thought[], calls, ...more };
  return { thoughts: text === '' ? [] : [{ text }], calls: {} };
}
