import type { AgentProfile } from '../../context/index.ts';
import type { ActorAddress, PinnedTurn, PromptMessage, ToolCall, TurnId, Usage } from '../../events/index.ts';
import type { Provider, ResponseName } from '../../providers/provider.ts';
import type { SpanAttributes } from '../../base/tracing.ts';

/** The ids of a span: those of the log and the page. */
export interface SpanPlace extends ActorAddress {
  turn: TurnId;
  process: string;
}

/** End of a model call, as a span reports it. */
export type CallEnded =
  | {
      kind: 'answered';
      usage: Usage;
      stop?: string;
      text?: string;
      calls?: readonly ToolCall[];
      response?: ResponseName;
    }
  | { kind: 'failed'; code: string }
  | { kind: 'aborted' };

/** Names of the OpenTelemetry conventions. Other providers keep their own. */
const PROVIDER_NAMES: Readonly<Record<string, string>> = { 'claude-code': 'anthropic', codex: 'openai' };
const FINISH_REASONS: Readonly<Record<string, string>> = {
  end: 'stop',
  calls: 'tool_call',
  length: 'length',
  refusal: 'content_filter',
};

/** A model call before it is made. */
export interface CallFacts {
  purpose: 'turn' | 'compaction';
  /** From 1. */
  step: number;
  /** Tries of the same request, this one included. */
  tries: number;
  messages: readonly PromptMessage[];
  /** The model server, if the provider has one. */
  server?: Provider['server'];
}

type Modelled = Pick<AgentProfile, 'id' | 'name' | 'provider' | 'model' | 'maxOutputTokens'>;

export function turnAttributes(profile: Modelled, place: SpanPlace, turn: PinnedTurn): SpanAttributes {
  const seq = turn.inputs.at(-1);
  return {
    'gen_ai.operation.name': 'invoke_agent',
    ...modelAttributes(profile),
    ...placeAttributes(place),
    'gen_ai.agent.name': profile.name,
    'troupe.attempt': turn.attempt,
    'troupe.process': place.process,
    ...(seq !== undefined && { 'troupe.event.seq': seq }),
  };
}

export function callAttributes(
  profile: Modelled,
  place: SpanPlace,
  { purpose, step, tries, messages, server }: CallFacts,
  content: boolean,
): SpanAttributes {
  return {
    'gen_ai.operation.name': 'chat',
    ...modelAttributes(profile),
    ...placeAttributes(place),
    'gen_ai.request.max_tokens': profile.maxOutputTokens,
    ...(server && { 'server.address': server.address, 'server.port': server.port }),
    'troupe.step': step,
    'troupe.call': tries,
    'troupe.purpose': purpose,
    ...(content && { 'gen_ai.input.messages': JSON.stringify(messages.map(messageOf)) }),
  };
}

export function toolAttributes(
  { id, name, args }: ToolCall,
  place: SpanPlace,
  content: boolean,
): SpanAttributes {
  return {
    'gen_ai.operation.name': 'execute_tool',
    'gen_ai.tool.name': name,
    'gen_ai.tool.call.id': id,
    'gen_ai.tool.type': 'function',
    ...placeAttributes(place),
    ...(content && { 'gen_ai.tool.call.arguments': args }),
  };
}

export function endAttributes(ended: CallEnded, content: boolean): SpanAttributes {
  if (ended.kind !== 'answered') return {};
  const { usage, stop, text = '', calls = [], response } = ended;
  const reason = FINISH_REASONS[stop ?? ''];
  return {
    'gen_ai.usage.input_tokens': usage.input,
    'gen_ai.usage.output_tokens': usage.output,
    'gen_ai.usage.cache_read.input_tokens': usage.cacheRead,
    'gen_ai.usage.cache_creation.input_tokens': usage.cacheWrite,
    ...(response?.model !== undefined && { 'gen_ai.response.model': response.model }),
    ...(response?.id !== undefined && { 'gen_ai.response.id': response.id }),
    ...(reason !== undefined && { 'gen_ai.response.finish_reasons': [reason] }),
    ...(content && {
      'gen_ai.output.messages': JSON.stringify([
        { role: 'assistant', parts: partsOf(text, calls), finish_reason: reason ?? 'stop' },
      ]),
    }),
  };
}

function modelAttributes({ provider, model }: Modelled): SpanAttributes {
  return { 'gen_ai.provider.name': PROVIDER_NAMES[provider] ?? provider, 'gen_ai.request.model': model };
}

function placeAttributes({ tenant, conversation, agent, turn }: SpanPlace): SpanAttributes {
  return {
    'gen_ai.agent.id': agent,
    'gen_ai.conversation.id': conversation,
    'troupe.tenant': tenant,
    'troupe.conversation': conversation,
    'troupe.turn': turn,
  };
}

function messageOf(message: PromptMessage): Record<string, unknown> {
  if (message.role === 'tool')
    return {
      role: 'tool',
      parts: [{ type: 'tool_call_response', id: message.call, result: message.content }],
    };
  return {
    role: message.role,
    parts: partsOf(message.content, message.role === 'assistant' ? message.calls : []),
  };
}

function partsOf(text: string, calls: readonly ToolCall[] = []): Record<string, unknown>[] {
  const said = text === '' ? [] : [{ type: 'text', content: text }];
  return [...said, ...calls.map(({ id, name, args }) => ({ type: 'tool_call', id, name, arguments: args }))];
}
