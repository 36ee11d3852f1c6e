import type {
  LanguageModelV4CallOptions,
  LanguageModelV4FilePart,
  LanguageModelV4Message,
  LanguageModelV4Prompt,
  LanguageModelV4TextPart,
} from '@ai-sdk/provider';
import type { PromptMessage } from '../../events/index.ts';
import { fitCallId, fitToolName, parseArgs, shownImages } from '../call-text.ts';
import { appendSchema, shownSchema } from '../plain-schema.ts';
import type { ModelRequest } from '../provider.ts';
import { type SignedParts, signedParts } from './signature.ts';
import type { VendorTraits } from './vendors.ts';

type Assistant = Extract<LanguageModelV4Message, { role: 'assistant' }>;
type AssistantPart = Assistant['content'][number];
type Schema = NonNullable<LanguageModelV4CallOptions['tools']>[number] & { type: 'function' };

/** The part of the call that the conversation decides. */
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
  /** Index in `prompt` of each message; a message may be part of one before it. */
  const places: number[] = [];
  for (const message of request.messages) {
    const sent = messageOf(message, request, { provider, callIds });
    const last = prompt.at(-1);
    // Results of one answer belong together.
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

/** Null: the message is empty, which vendors refuse. */
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

/** Reasoning goes back to its place: vendors check the order. */
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
