import {
  addUsage,
  classifyFailure,
  type MessageEvent,
  type ModelEvent,
  type ModelFailure,
  type ModelRequest,
  NO_USAGE,
  type PlacedThought,
  readMessageEvents,
  type SessionChange,
  type StreamWatch,
  type Usage,
  type VendorError,
} from '../troupe.ts';
import type { SdkMessage } from './agent-sdk.ts';
import type { CliProcess } from './processes.ts';
import { TOOL_PREFIX } from './tool-server.ts';

export interface ReadTurnOptions {
  process: CliProcess;
  request: ModelRequest;
  /** Null if the turn continues. */
  change: SessionChange | null;
  provider: string;
  version: string;
  secrets: readonly string[];
  watch: Pick<StreamWatch, 'touch' | 'meter'>;
}

type Done = Extract<ModelEvent, { type: 'done' }>;

/** The session itself keeps signatures. Only the signature of a single thought is passed on. */
function signatureOf([only, ...others]: readonly PlacedThought[]): string {
  return others.length === 0 && only?.type === 'thinking' ? only.signature : '';
}

/**
 * Reads one stream of the port from Claude Code's messages. The stream ends when the model has called a tool of ours, or at
 * the end of the turn. Model calls followed only by the CLI's own tools are reported as one. A stop for length or refusal also
 * ends the stream: the CLI would continue by itself, so its process must be stopped.
 */
export function readTurn(options: ReadTurnOptions): AsyncGenerator<ModelEvent> {
  return new SdkTurnReader(options).events();
}

class SdkTurnReader {
  readonly #options: ReadTurnOptions;
  readonly #names: ReadonlySet<string>;
  #change: SessionChange | null;
  /** A message that was read but not yet handled. */
  #held: SdkMessage | null | undefined;
  #opened = false;
  #said = false;
  #session: string | undefined;
  #checkpoint: string | undefined;
  #apiError: SdkMessage | undefined;

  constructor(options: ReadTurnOptions) {
    this.#options = options;
    this.#names = new Set(options.request.tools.map(({ name }) => name));
    this.#change = options.change;
  }

  async *events(): AsyncGenerator<ModelEvent> {
    let usage = NO_USAGE;
    while (true) {
      const message = this.#held === undefined ? await this.#next() : this.#held;
      this.#held = undefined;
      if (!message) return yield this.#ended();
      yield* this.#sessionEvents(message);
      if (message.type === 'result') return yield this.#result(message, usage);
      if (message.event?.type !== 'message_start') continue;
      this.#opened = true;
      const answer = yield* this.#modelCall(message.event);
      if (!answer) continue;
      usage = addUsage(usage, answer.usage);
      if (answer.stop !== 'end' && (answer.stop !== 'calls' || answer.hasOurs))
        return yield { type: 'done', stop: answer.stop, usage, ...(answer.stop === 'calls' && this.#mark()) };
    }
  }

  async #next(): Promise<SdkMessage | null> {
    const { process, watch } = this.#options;
    while (true) {
      const message = await process.next();
      watch.touch();
      if (message?.parent_tool_use_id) continue;
      this.#session = message?.session_id ?? this.#session;
      if (message?.type === 'assistant' && message.is_api_error_message) this.#apiError = message;
      else if (message?.type === 'assistant') this.#checkpoint = message.uuid;
      return message;
    }
  }

  *#sessionEvents(message: SdkMessage): Generator<ModelEvent> {
    const isInit = message.type === 'system' && message.subtype === 'init';
    if (this.#change && isInit && this.#session !== undefined) {
      yield { type: 'session', change: this.#change, id: this.#session };
      this.#change = null;
    }
    if (isBoundary(message)) yield { type: 'compacted' };
  }

  /** Null if the call broke off: the result then has the reason. */
  async *#modelCall(
    first: MessageEvent,
  ): AsyncGenerator<ModelEvent, { stop: Done['stop']; usage: Usage; hasOurs: boolean } | null> {
    const { request, provider, watch } = this.#options;
    const calls: ModelEvent[] = [];
    let isFirstText = true;
    const reader = { provider, signatureOf };
    for await (const event of readMessageEvents(this.#callEvents(first), request, reader, watch)) {
      if (event.type === 'done') {
        if (event.stop === 'calls') yield* calls;
        return { stop: event.stop, usage: event.usage, hasOurs: calls.length > 0 };
      }
      if (event.type === 'call') {
        const name = this.#ownName(event.call.name);
        if (name !== undefined) calls.push({ type: 'call', call: { ...event.call, name } });
        continue;
      }
      if (event.type === 'calling') {
        const name = this.#ownName(event.name);
        if (name !== undefined) yield { ...event, name };
        continue;
      }
      if (event.type === 'text') {
        // Text after a tool of the CLI's own starts a new paragraph.
        if (isFirstText && this.#said) yield { type: 'text', delta: '\n\n' };
        isFirstText = false;
        this.#said = true;
      }
      yield event;
    }
    return null;
  }

  /** The events of one model call. The first message that does not belong to it is kept for later. */
  async *#callEvents(first: MessageEvent): AsyncGenerator<MessageEvent> {
    yield first;
    while ((this.#held = await this.#next())) {
      if (this.#held.type === 'result' || isBoundary(this.#held)) return;
      if (this.#held.event) yield this.#held.event;
      if (this.#held.event?.type === 'message_stop') break;
    }
    if (this.#held) this.#held = undefined;
  }

  /** The tool's own name. Undefined for the CLI's own tools, and for names that the CLI itself refuses. */
  #ownName(shown: string): string | undefined {
    const name = shown.startsWith(TOOL_PREFIX) ? shown.slice(TOOL_PREFIX.length) : undefined;
    return name !== undefined && this.#names.has(name) ? name : undefined;
  }

  #result(result: SdkMessage, usage: Usage): ModelEvent {
    const { secrets } = this.#options;
    if (result.is_error || result.subtype !== 'success') {
      const context = { apiError: this.#apiError, opened: this.#opened, secrets };
      return { type: 'failed', error: failureOfResult(result, context) };
    }
    return { type: 'done', stop: 'end', usage, ...this.#mark() };
  }

  /** The place after the last answer. The CLI leaves out calls without a result when it resumes there. */
  #mark(): Pick<Done, 'session'> {
    const [id, checkpoint] = [this.#session, this.#checkpoint];
    const isKept = id !== undefined && checkpoint !== undefined && this.#options.request.session;
    return isKept ? { session: { id, checkpoint } } : {};
  }

  #ended(): ModelEvent {
    const { process, version, secrets } = this.#options;
    const ending = process.ending();
    if (ending.excess) throw ending.excess;
    return { type: 'failed', error: failureOfEnd(ending, { opened: this.#opened, version, secrets }) };
  }
}

function isBoundary({ type, subtype }: SdkMessage): boolean {
  return type === 'system' && subtype === 'compact_boundary';
}

/** Claude Code's error words, mapped to those of the API. */
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
  /** The synthetic message that reported the error. */
  apiError: SdkMessage | undefined;
  /** The model had begun to answer. */
  opened: boolean;
  secrets: readonly string[];
}

/** Classifies a turn that ended with an error. Claude Code does not pass on the headers of the API's response. */
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
  /** Version of the package. */
  version: string;
  secrets: readonly string[];
}

const ENDED_BY_SIGNAL = /^it was ended by SIG/;

/** Classifies the end of a process within a turn. */
function failureOfEnd(
  { spoke, words }: { spoke: boolean; words: string },
  { opened, version, secrets }: EndContext,
): ModelFailure {
  let message = `Claude Code (@anthropic-ai/claude-agent-sdk ${version}) ${spoke ? 'ended within a turn' : 'did not start'}: ${words}`;
  for (const secret of secrets) message = message.replaceAll(secret, '[key]');
  // Killed from outside: the program itself works, so it may be started again.
  if (!spoke && !ENDED_BY_SIGNAL.test(words)) return { code: 'provider_unusable', message };
  return { code: opened ? 'provider_truncated' : 'provider_failed', message };
}
