import type Anthropic from '@anthropic-ai/sdk';
import { addUsage, NO_USAGE, type Usage } from '../../events/index.ts';
import { readMessageEvents } from '../anthropic/events.ts';
import type { StreamWatch } from '../guard-stream.ts';
import type { ModelEvent, ModelFailure, ModelRequest, SessionChange } from '../provider.ts';
import type { SdkMessage } from './agent-sdk.ts';
import type { CliProcess } from './cli-process.ts';
import { TOOL_PREFIX } from './tool-server.ts';
import { classifyFailure, type VendorError } from '../classify-failure.ts';

export interface ReadTurnOptions {
  process: CliProcess;
  request: ModelRequest;
  /** Null while a turn goes on. */
  change: SessionChange | null;
  provider: string;
  version: string;
  secrets: readonly string[];
  watch: Pick<StreamWatch, 'touch' | 'meter'>;
}

type Done = Extract<ModelEvent, { type: 'done' }>;

/**
 * Reads one stream of the port out of what Claude Code says. It ends where the model has called a tool of ours, or with
 * the turn; model calls after which only the CLI's own tools are run are told as one. A stop for length or refusal ends
 * it too: the CLI would go on by itself, so that its process must be stopped.
 */
export async function* readTurn(options: ReadTurnOptions): AsyncGenerator<ModelEvent> {
  const { process, request, provider, version, secrets, watch } = options;
  const names = new Set(request.tools.map(({ name }) => name));
  let { change } = options;
  let usage = NO_USAGE;
  let opened = false;
  let said = false;
  let session: string | undefined;
  let checkpoint: string | undefined;
  let apiError: SdkMessage | undefined;

  async function next(): Promise<SdkMessage | null> {
    while (true) {
      const message = await process.next();
      watch.touch();
      if (message?.parent_tool_use_id) continue;
      session = message?.session_id ?? session;
      if (message?.type === 'assistant' && message.is_api_error_message) apiError = message;
      else if (message?.type === 'assistant') checkpoint = message.uuid;
      return message;
    }
  }

  let held: SdkMessage | null | undefined;
  /** The events of one model call. What does not belong to it is left for the loop below. */
  async function* callEvents(first: Anthropic.RawMessageStreamEvent) {
    yield first;
    while ((held = await next())) {
      if (held.type === 'result' || isBoundary(held)) return;
      if (held.event) yield held.event;
      if (held.event?.type === 'message_stop') break;
    }
    if (held) held = undefined;
  }

  while (true) {
    const message = held === undefined ? await next() : held;
    held = undefined;
    if (!message) {
      const ending = process.ending();
      if (ending.excess) throw ending.excess;
      yield { type: 'failed', error: failureOfEnd(ending, { opened, version, secrets }) };
      return;
    }
    if (change && message.type === 'system' && message.subtype === 'init' && session !== undefined) {
      yield { type: 'session', change, id: session };
      change = null;
    }
    if (isBoundary(message)) yield { type: 'compacted' };
    if (message.type === 'result') {
      yield resultEvent(message);
      return;
    }
    if (message.event?.type !== 'message_start') continue;
    opened = true;
    const answer = yield* modelCall(message.event);
    if (!answer) continue;
    usage = addUsage(usage, answer.usage);
    if (answer.stop !== 'end' && (answer.stop !== 'calls' || answer.hasOurs)) {
      yield { type: 'done', stop: answer.stop, usage };
      return;
    }
  }

  /** Null where it broke off: what was wrong comes with the result. */
  async function* modelCall(
    first: Anthropic.RawMessageStreamEvent,
  ): AsyncGenerator<ModelEvent, { stop: Done['stop']; usage: Usage; hasOurs: boolean } | null> {
    const calls: ModelEvent[] = [];
    let isFirstText = true;
    for await (const event of readMessageEvents(callEvents(first), request, provider, watch)) {
      if (event.type === 'done') {
        if (event.stop === 'calls') yield* calls;
        return { stop: event.stop, usage: event.usage, hasOurs: calls.length > 0 };
      }
      if (event.type === 'text') {
        // What was said before a tool of the CLI's own was run is a paragraph of its own.
        if (isFirstText && said) yield { type: 'text', delta: '\n\n' };
        isFirstText = false;
        said = true;
      }
      const name = event.type === 'call' ? ownName(event.call.name) : undefined;
      if (event.type === 'call' && name === undefined) continue;
      if (event.type === 'call' && name !== undefined)
        calls.push({ type: 'call', call: { ...event.call, name } });
      else yield event;
    }
    return null;
  }

  /** Undefined for the CLI's own tools, and for names that it refuses itself. */
  function ownName(shown: string): string | undefined {
    const name = shown.startsWith(TOOL_PREFIX) ? shown.slice(TOOL_PREFIX.length) : undefined;
    return name !== undefined && names.has(name) ? name : undefined;
  }

  function resultEvent(result: SdkMessage): ModelEvent {
    if (result.is_error || result.subtype !== 'success')
      return { type: 'failed', error: failureOfResult(result, { apiError, opened, secrets }) };
    if (session === undefined || checkpoint === undefined || !request.session)
      return { type: 'done', stop: 'end', usage };
    return { type: 'done', stop: 'end', usage, session: { id: session, checkpoint } };
  }
}

function isBoundary({ type, subtype }: SdkMessage): boolean {
  return type === 'system' && subtype === 'compact_boundary';
}

/** Words of Claude Code's own, as the API would have said it. */
const WORDS: Readonly<Record<string, string>> = {
  authentication_failed: 'authentication_error',
  oauth_org_not_allowed: 'authentication_error',
  rate_limit: 'rate_limit_error',
  invalid_request: 'invalid_request_error',
  prompt_too_long: 'request_too_large',
};
const LOST =
  /No conversation found with session ID|--resume requires a valid session|No message found with message\.uuid/;

interface ResultContext {
  /** The synthetic message that told of it. */
  apiError: SdkMessage | undefined;
  /** The model had begun to answer. */
  opened: boolean;
  secrets: readonly string[];
}

/** A turn that ended with an error. The headers of the API's answer are not passed on by Claude Code. */
function failureOfResult(result: SdkMessage, { apiError, opened, secrets }: ResultContext): ModelFailure {
  const errors = result.errors?.join('; ') ?? '';
  if (LOST.test(errors)) return { code: 'provider_session_lost', message: errors };
  const said = [apiError?.error, result.api_error_type ?? apiError?.api_error_type, result.terminal_reason];
  const error: VendorError = {
    words: said.flatMap((word) => (word === undefined ? [] : [WORDS[word] ?? word.toLowerCase()])),
    message: result.result || errors || 'Claude Code gave no reason',
    connection: (result.api_error ?? apiError?.api_error) === 'connection_failed',
  };
  const status = result.api_error_status ?? apiError?.api_error_status;
  if (typeof status === 'number') error.status = status;
  return classifyFailure(error, { opened, now: Date.now(), secrets });
}

interface EndContext {
  opened: boolean;
  /** Of the package. */
  version: string;
  secrets: readonly string[];
}

const ENDED_BY_SIGNAL = /^it was ended by SIG/;

/** A process that ended within a turn. */
function failureOfEnd(
  { spoke, words }: { spoke: boolean; words: string },
  { opened, version, secrets }: EndContext,
): ModelFailure {
  let message = `Claude Code (@anthropic-ai/claude-agent-sdk ${version}) ${spoke ? 'ended within a turn' : 'did not start'}: ${words}`;
  for (const secret of secrets) message = message.replaceAll(secret, '[key]');
  // Killed from outside: nothing is wrong with the program, and the next one may start.
  if (!spoke && !ENDED_BY_SIGNAL.test(words)) return { code: 'provider_unusable', message };
  return { code: opened ? 'provider_truncated' : 'provider_failed', message };
}
