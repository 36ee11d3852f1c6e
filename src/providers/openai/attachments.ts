import { parseArgs } from '../call-text.ts';
import type { ReplyMeter } from '../reply-limits.ts';

type Fields = Record<string, unknown>;

/** The field of the reasoning in answers. Servers use one of them, and some send the first two at once. */
const THOUGHT_FIELDS = ['reasoning_content', 'reasoning', 'reasoning_text'] as const;
export type ThoughtField = (typeof THOUGHT_FIELDS)[number];

/**
 * What servers attach to a message and want back with it.
 * `extra_content`: Gemini, https://ai.google.dev/gemini-api/docs/openai. `reasoning_details`: OpenRouter and MiniMax,
 * https://openrouter.ai/docs/use-cases/reasoning-tokens. `provider_specific_fields`, `thinking_blocks`: LiteLLM,
 * https://docs.litellm.ai/docs/reasoning_content. `reasoning_opaque`: GitHub Copilot.
 */
const OF_MESSAGES = [
  'extra_content',
  'reasoning_details',
  'provider_specific_fields',
  'thinking_blocks',
  'reasoning_opaque',
  'reasoning_signature',
  'thought_signature',
] as const;
/** The parts of a call itself. All others were attached to it: Gemini's and LiteLLM's thought signatures. */
const OF_CALLS = new Set([
  'index',
  'id',
  'type',
  'function',
  'custom',
  'name',
  'arguments',
  'input',
  'parameters',
]);
const OF_FUNCTIONS = new Set(['name', 'arguments', 'input', 'parameters', 'parsed_arguments', 'description']);
/** The log cuts longer ids. */
const LOGGED_CHARACTERS = 256;
/** All servers take shorter ids. */
const COMMON_CHARACTERS = 40;
const PREFIX = 'chat:';

/** What was attached to an answer, as the signature of its reasoning holds it. */
export interface Attached {
  field?: ThoughtField;
  message?: Fields;
  /** By the id of the call in the log. */
  calls?: Record<string, AttachedCall>;
}

export interface AttachedCall {
  /** The server's own id, if not every server would take it, or the log has only its beginning. */
  id?: string;
  call?: Fields;
  function?: Fields;
}

/** Empty unless the signature is one of these: a log may come from elsewhere. */
export function attachedIn(signature = ''): Attached {
  if (!signature.startsWith(PREFIX)) return {};
  return (parseArgs(signature.slice(PREFIX.length)) ?? {}) as Attached;
}

/** The text of the reasoning in a delta, and its field. */
export function thoughtIn(delta: Fields): { field?: ThoughtField; text: string } {
  for (const field of THOUGHT_FIELDS) {
    const text = delta[field];
    if (typeof text === 'string' && text !== '') return { field, text };
  }
  return { text: '' };
}

interface CallParts {
  id: string;
  /** Number of calls that had begun before. */
  at: number;
  call: Fields;
  function: Fields;
}

/** Collects what the pieces of an answer attach. */
export class Attachments {
  readonly #meter: ReplyMeter;
  readonly #message: Fields = {};
  readonly #calls: CallParts[] = [];
  #begun = 0;
  #field: ThoughtField | undefined;

  constructor(meter: ReplyMeter) {
    this.#meter = meter;
  }

  get isEmpty(): boolean {
    return this.#calls.length === 0 && Object.keys(this.#message).length === 0;
  }

  /** Reads one delta. `field`: the field of its reasoning. */
  add(delta: Fields, field: ThoughtField | undefined): void {
    this.#field ??= field;
    for (const name of OF_MESSAGES) {
      const given = delta[name];
      if (given === undefined || given === null) continue;
      this.#meter.reasoning(JSON.stringify(given));
      this.#message[name] = merged(this.#message[name], given);
    }
    const { tool_calls: calls } = delta;
    if (Array.isArray(calls)) for (const call of calls) if (isFields(call)) this.#addCall(call);
  }

  #addCall(given: Fields): void {
    const made = isFields(given['function']) ? given['function'] : {};
    const id = typeof given['id'] === 'string' ? given['id'] : '';
    if (made['name']) this.#begun += 1;
    const parts = { call: othersIn(given, OF_CALLS), function: othersIn(made, OF_FUNCTIONS) };
    const isPlain = parts.call === null && parts.function === null;
    if (isPlain && id.length <= COMMON_CHARACTERS) return;
    this.#meter.reasoning(id + JSON.stringify(parts));
    const at = Math.max(0, this.#begun - 1);
    const known = this.#calls.find((each) => (id === '' ? each.at === at : each.id === id));
    const entry = known ?? { id, at, call: {}, function: {} };
    if (!known) this.#calls.push(entry);
    entry.call = merged(entry.call, parts.call ?? {}) as Fields;
    entry.function = merged(entry.function, parts.function ?? {}) as Fields;
  }

  /** Null: nothing was attached. `given`: the ids of the calls, in their order. */
  signature(given: readonly string[]): string | null {
    const ids = given.map((id) => id.slice(0, LOGGED_CHARACTERS));
    const attached: Attached = {};
    if (this.#field) attached.field = this.#field;
    if (Object.keys(this.#message).length > 0) attached.message = this.#message;
    const calls = this.#calls.flatMap(({ id, at, ...parts }) => {
      const own = id.slice(0, LOGGED_CHARACTERS);
      const logged = ids.includes(own) ? own : ids[at];
      if (logged === undefined) return [];
      const filled = Object.entries(parts).filter(([, fields]) => Object.keys(fields).length > 0);
      const isLong = id.length > COMMON_CHARACTERS && logged === own;
      return [[logged, { ...(isLong && { id }), ...Object.fromEntries(filled) }] as const];
    });
    if (calls.length > 0) attached.calls = Object.fromEntries(calls);
    return Object.keys(attached).length === 0 ? null : PREFIX + JSON.stringify(attached);
  }
}

function othersIn(given: Fields, known: ReadonlySet<string>): Fields | null {
  const others = Object.entries(given).filter(([name, value]) => !known.has(name) && value !== null);
  return others.length === 0 ? null : Object.fromEntries(others);
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Lists grow, objects are joined, and everything else is replaced. */
function merged(known: unknown, given: unknown): unknown {
  if (Array.isArray(given)) return Array.isArray(known) ? joinedLists(known, given) : joinedLists([], given);
  if (!isFields(known) || !isFields(given)) return given;
  const both = { ...known };
  for (const [name, value] of Object.entries(given)) {
    const isList = Array.isArray(value) || Array.isArray(both[name]);
    both[name] = isList || !Object.hasOwn(both, name) ? value : merged(both[name], value);
  }
  return both;
}

/** Texts that come in pieces, one entry for each. */
const GROWING = ['text', 'summary', 'thinking'] as const;

/** A piece of the last entry is joined to it; the sequence stays as it came. */
function joinedLists(known: unknown[], given: readonly unknown[]): unknown[] {
  for (const entry of given) {
    const last = known.at(-1);
    if (isFields(last) && isFields(entry) && isPieceOf(last, entry))
      known[known.length - 1] = grown(last, entry);
    else known.push(entry);
  }
  return known;
}

/** A signature, or encrypted data, closes an entry. */
function isPieceOf(last: Fields, entry: Fields): boolean {
  if (last['signature'] || 'data' in last || 'data' in entry || last['type'] !== entry['type']) return false;
  const isSame = (name: string) => !last[name] || !entry[name] || last[name] === entry[name];
  return isSame('index') && isSame('id') && GROWING.some((name) => name in last && name in entry);
}

function grown(last: Fields, entry: Fields): Fields {
  const both = { ...last };
  for (const [name, value] of Object.entries(entry)) {
    const isText = GROWING.some((each) => each === name) && typeof both[name] === 'string';
    if (isText) both[name] = `${both[name] as string}${typeof value === 'string' ? value : ''}`;
    else if (value !== null || !(name in both)) both[name] = value;
  }
  return both;
}
