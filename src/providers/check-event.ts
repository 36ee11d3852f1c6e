import { NO_USAGE, type Reasoning, type ToolCall, type Usage } from '../events/index.ts';
import type { ModelEvent, ModelFailure, ModelRequest, ResponseName } from './provider.ts';
import { ERROR_CODES, type ErrorCode, TroupeError } from '../base/errors.ts';
import { argsText, mintCallId } from './call-text.ts';
import { shownMessage } from './classify-failure.ts';
import type { ReplyMeter } from './reply-limits.ts';

/** Facts about a call that do not come from its vendor. */
interface CallFacts {
  request: ModelRequest;
  /** Bytes of text, reasoning and arguments received. */
  saidBytes: number;
  /** The provider adds its own memory to the request, and may call its model many times for one answer. */
  remembers: boolean;
}

/** A token takes at least one byte. Vendors add tokens of their own: around messages, for tools, for a harness. */
const ADDED_TOKENS = 65_536;
const TOKENS_PER_MESSAGE = 64;
const TOKENS_PER_IMAGE = 65_536;
/** Allowance for hidden reasoning beyond `maxOutputTokens`: some servers do not count it as output. */
const HIDDEN_TIMES = 4;
const HIDDEN_TOKENS = 65_536;
/** For a provider with a memory: a hundred calls of a million tokens. */
const REMEMBERED_TOKENS = 100_000_000;

/**
 * The vendor's usage if it is plausible for this call, else none and the reason for the doubt. Budgets, prices and
 * estimates all build on it, so one figure that contradicts what was sent or received discredits them all.
 */
export function checkUsage(reported: Usage, facts: CallFacts): { usage: Usage; doubt?: string } {
  const doubt = doubtOf(reported, facts);
  return doubt === null ? { usage: reported } : { usage: NO_USAGE, doubt };
}

function doubtOf(reported: Usage, facts: CallFacts): string | null {
  for (const name of Object.keys(NO_USAGE) as (keyof Usage)[]) {
    const value: unknown = (Object(reported) as Usage)[name];
    if (!Number.isSafeInteger(value) || (value as number) < 0) return `${name} is ${shown(value)}`;
  }
  const { input, output, cacheRead, cacheWrite, reasoning } = reported;
  if (cacheRead + cacheWrite > input)
    return `${cacheRead + cacheWrite} cached tokens in an input of ${input}`;
  const mostInput = facts.remembers ? REMEMBERED_TOKENS : mostSent(facts.request, input);
  if (input > mostInput) return `input is ${input}, but the request has at most ${mostInput} tokens`;
  const { maxOutputTokens } = facts.request;
  const mostOutput = facts.remembers
    ? REMEMBERED_TOKENS
    : facts.saidBytes + maxOutputTokens * HIDDEN_TIMES + HIDDEN_TOKENS;
  const most = Math.max(output, reasoning);
  return most > mostOutput ? `output is ${most}, but the answer has at most ${mostOutput} tokens` : null;
}

/** The tokens that the request may have, or some part of them that is `enough`. */
function mostSent({ messages, images, tools, replySchema }: ModelRequest, enough: number): number {
  const framed = messages.length * TOKENS_PER_MESSAGE + ADDED_TOKENS;
  // To write a long prompt as JSON takes as long as the rest of a turn. Its words alone nearly always suffice.
  const words = messages.reduce((sum, { content }) => sum + content.length, framed);
  if (words >= enough) return words;
  const bytes = messages.reduce((sum, message) => sum + sizeOf(message), 0);
  const named = sizeOf(tools) + (replySchema ? sizeOf(replySchema) : 0);
  const pictures = (images?.size ?? 0) * TOKENS_PER_IMAGE;
  return bytes + named + pictures + framed;
}

function sizeOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}

function shown(value: unknown): string {
  return typeof value === 'string' ? JSON.stringify(value.slice(0, 40)) : String(value).slice(0, 40);
}

const MAX_CHARACTERS = 200;

/** The vendor's own names, bounded in length and dropped if they contain a secret. */
export function checkName(name: ResponseName, secrets: readonly string[]): ResponseName | undefined {
  const model = responseText(name.model, secrets);
  const id = responseText(name.id, secrets);
  if (model === undefined && id === undefined) return undefined;
  return { ...(model !== undefined && { model }), ...(id !== undefined && { id }) };
}

function responseText(text: unknown, secrets: readonly string[]): string | undefined {
  if (typeof text !== 'string' || text === '') return undefined;
  if (secrets.some((secret) => secret !== '' && text.includes(secret))) return undefined;
  return text.slice(0, MAX_CHARACTERS).toWellFormed();
}

const MAX_NAME_LENGTH = 256;

/** Checks the types: servers are not trusted. Throws `provider_invalid_reply`. */
export function checkReasoning(reasoning: Reasoning): Reasoning {
  const { text, signature, provider, model } = Object(reasoning) as Reasoning;
  if (typeof text !== 'string') throw unsound('reasoning', text);
  if (signature !== undefined && typeof signature !== 'string') throw unsound('a signature', signature);
  if (typeof provider !== 'string') throw unsound('the provider of reasoning', provider);
  if (typeof model !== 'string') throw unsound('the model of reasoning', model);
  return reasoning;
}

export function checkText(delta: unknown, what = 'text'): string {
  if (typeof delta !== 'string') throw unsound(what, delta);
  return delta;
}

/**
 * The call with a name and arguments as events require, and an id of its own: results find their calls by it. `before`: the calls
 * of the answer so far.
 */
export function checkCall(
  { id: given, name, args }: ToolCall,
  { trace }: ModelRequest,
  before: readonly ToolCall[],
): ToolCall {
  const id = nameOf(given);
  const isTaken = id === '' || before.some((call) => call.id === id);
  return {
    id: isTaken ? mintCallId(trace, before.length) : id,
    name: nameOf(name) || 'unknown',
    args: argsText(args),
  };
}

type Calling = Extract<ModelEvent, { type: 'calling' }>;

/**
 * Pieces of calls as they may be shown: with the ids and names that their calls will have. Null for a piece of no call: it
 * has no id, or its call is whole.
 */
export function createPieceCheck(meter: ReplyMeter) {
  /** Names of the calls that have begun. Null: it is whole. */
  const begun = new Map<string, string | null>();
  let told = 0;
  return {
    calling({ id: givenId, name: givenName, delta }: Calling): Calling | null {
      checkText(delta, 'a piece of the arguments of a call');
      const id = nameOf(givenId);
      const known = begun.get(id);
      if (id === '' || known === null) return null;
      if (known === undefined) {
        meter.call();
        told += 1;
      }
      meter.arguments(delta);
      const name = known ?? (nameOf(givenName) || 'unknown');
      begun.set(id, name);
      return { type: 'calling', id, name, delta };
    },
    whole({ id }: ToolCall): void {
      begun.set(id, null);
    },
    /** The tool of a call that has begun beyond these whole ones. */
    unfinished(whole: number): string | undefined {
      return told > whole ? ([...begun.values()].findLast((name) => name !== null) ?? undefined) : undefined;
    },
  };
}

const STOPS: readonly unknown[] = ['end', 'calls', 'length', 'refusal'] satisfies Stop[];
type Stop = Extract<ModelEvent, { type: 'done' }>['stop'];

export function checkStop(stop: Stop): Stop {
  if (STOPS.includes(stop)) return stop;
  throw invalid(`the answer stops with ${shown(stop)}, and not with one of ${STOPS.join(', ')}`);
}

/** The failure with a code of the port. Its message may be the vendor's. */
export function checkFailure(failure: ModelFailure, secrets: readonly string[]): ModelFailure {
  const { code, message, retryAfterMs, isAway } = Object(failure) as ModelFailure;
  const said = typeof message === 'string' && message !== '' ? message : 'the provider gives no reason';
  return {
    code: isFailureCode(code) ? code : 'provider_failed',
    message: shownMessage(said, secrets),
    ...(Number.isFinite(retryAfterMs) && { retryAfterMs }),
    ...(isAway === true && { isAway }),
  };
}

export function isFailureCode(code: ErrorCode): code is ModelFailure['code'] {
  return ERROR_CODES.includes(code) && (code.startsWith('provider_') || code === 'context_overflow');
}

/** For an event that no reader may give. */
export function unexpected(event: { type: unknown }): TroupeError {
  return invalid(`an event of the type ${shown(event.type)} has no place in the answer`);
}

function nameOf(value: unknown): string {
  return typeof value === 'string' ? value.slice(0, MAX_NAME_LENGTH) : '';
}

function unsound(what: string, value: unknown): TroupeError {
  const kind = value === null ? 'null' : Array.isArray(value) ? 'a list' : typeof value;
  return invalid(`${what} in the answer is ${kind}, and no text`);
}

function invalid(message: string): TroupeError {
  return new TroupeError('provider_invalid_reply', message);
}
