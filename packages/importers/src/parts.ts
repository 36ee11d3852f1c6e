import {
  type ImportNotes,
  noteRepair,
  noteSkip,
  type TranscriptEntry,
  isObject,
  type JsonObject,
  jsonText,
  nameOf,
  textOf,
} from './troupe.ts';

/** The text and calls of a model. */
export type AssistantEntry = Extract<TranscriptEntry, { kind: 'assistant' }>;
export type SaidEntry = Extract<TranscriptEntry, { kind: 'said' }>;
export type SummaryEntry = Extract<TranscriptEntry, { kind: 'summary' }>;
export type ForeignCall = AssistantEntry['calls'][number];
export type ForeignResult = Pick<
  Extract<TranscriptEntry, { kind: 'result' }>,
  'call' | 'name' | 'text' | 'failed'
>;
type Reasoning = NonNullable<AssistantEntry['reasoning']>;

/** The content of a message by kind. The JSON formats differ only in names. */
export type Parts = {
  text: string;
  calls: ForeignCall[];
  results: ForeignResult[];
  reasoning: Reasoning | null;
};

type Origin = { provider: string; model: string };
type Place = { report: ImportNotes; line: number };

/** Reads content that is a text, a list of parts, or nothing; null if it is anything else. */
export function readParts(content: unknown, place: Place, origin: Origin | null = null): Parts | null {
  const parts: Parts = { text: '', calls: [], results: [], reasoning: null };
  if (content == null) return parts;
  if (typeof content === 'string') return { ...parts, text: content };
  if (!Array.isArray(content)) return null;
  const texts: string[] = [];
  for (const part of content) {
    const text = readPart(part, parts, place, origin);
    if (text !== null) texts.push(text);
  }
  return { ...parts, text: texts.join('\n') };
}

function readPart(part: unknown, parts: Parts, place: Place, origin: Origin | null): string | null {
  if (typeof part === 'string') {
    noteRepair(place.report, 'plain_text_part', place.line, part);
    return part;
  }
  if (!isObject(part)) return placeholder(excerpt(part), place);
  if (addCall(part, parts)) return null;
  switch (part['type']) {
    case 'text':
    case 'input_text':
    case 'output_text':
      return typeof part['text'] === 'string' ? part['text'] : placeholder('text', place);
    case 'refusal':
      return textOf(part['refusal']);
    case 'thinking':
    case 'redacted_thinking':
    case 'reasoning':
      keepReasoning(part, parts, place, origin);
      return null;
    default:
      if (textOf(part['tool_use_id']) === null) return placeholder(partName(part), place);
      // `tool_result`, and results of the vendor's own tools: `web_search_tool_result`, …
      parts.results.push(readResult(part, place));
      return null;
  }
}

/** Takes a part that is a call, or a call's result in the AI SDK's form. False for any other part. */
function addCall(part: JsonObject, { calls, results }: Parts): boolean {
  switch (part['type']) {
    case 'toolCall':
      return calls.push(readCall(part, 'arguments')) > 0;
    case 'tool_use':
    case 'server_tool_use':
    case 'mcp_tool_use':
      return calls.push(readCall(part, 'input')) > 0;
    // https://ai-sdk.dev/docs/reference/ai-sdk-core/model-message
    case 'tool-call':
      return calls.push(sdkCall(part)) > 0;
    case 'tool-result':
      return results.push(sdkResult(part)) > 0;
    default:
      return false;
  }
}

function readCall(part: JsonObject, argsKey: string): ForeignCall {
  const partial = typeof part['partialJson'] === 'string';
  return { id: textOf(part['id']), name: textOf(part['name']), args: part[argsKey], partial };
}

/** A call in the AI SDK's form. */
export function sdkCall(part: JsonObject): ForeignCall {
  const args = part['input'] ?? part['args'];
  return { id: textOf(part['toolCallId']), name: textOf(part['toolName']), args, partial: false };
}

function sdkResult(part: JsonObject): ForeignResult {
  const output = part['output'] ?? part['result'];
  const typed = isObject(output) && 'value' in output ? output : { type: '', value: output };
  const failed = part['isError'] === true || nameOf(typed['type']).startsWith('error');
  return {
    call: textOf(part['toolCallId']),
    name: textOf(part['toolName']),
    text: plainText(typed['value']),
    failed,
  };
}

/** A text unchanged, parts with texts as their texts, nothing as nothing, and any other value as JSON. */
export function plainText(value: unknown): string {
  if (typeof value === 'string') return value;
  if (value == null) return '';
  const texts = Array.isArray(value) ? value.map((part) => (isObject(part) ? part['text'] : part)) : [null];
  return texts.every((text) => typeof text === 'string') ? texts.join('\n') : jsonText(value);
}

/** The calls that a message has in one place, and those that it has only in another. */
export function bothOf(calls: readonly ForeignCall[], others: readonly ForeignCall[]): ForeignCall[] {
  const ids = new Set(calls.map(({ id }) => id));
  return [...calls, ...others.filter(({ id }) => id === null || !ids.has(id))];
}

/** Joins two entries of one model message. A block that both have is kept once. */
export function merged(first: AssistantEntry, next: AssistantEntry, notes: ImportNotes): AssistantEntry {
  const { line } = next;
  if (first.reasoning && next.reasoning) noteRepair(notes, 'reasoning_dropped', line, 'no place for it');
  const calls = bothOf(first.calls, next.calls);
  if (calls.length < first.calls.length + next.calls.length)
    noteSkip(notes, 'told_twice', line, 'a call of the same message');
  const isRepeated = next.text !== '' && next.text === first.text;
  if (isRepeated) noteSkip(notes, 'told_twice', line, next.text);
  return {
    ...first,
    text: [first.text, isRepeated ? '' : next.text].filter((text) => text !== '').join('\n'),
    calls,
    reasoning: first.reasoning ?? next.reasoning,
    ended: first.ended ?? next.ended,
  };
}

/** Joins entries that continue each other. */
export async function* joinSteps(
  entries: AsyncIterable<TranscriptEntry>,
  notes: ImportNotes,
): AsyncGenerator<TranscriptEntry, void> {
  let pending: AssistantEntry | null = null;
  for await (const entry of entries) {
    if (pending && entry.kind === 'assistant' && entry.joins) {
      pending = merged(pending, entry, notes);
      continue;
    }
    if (pending) yield pending;
    pending = entry.kind === 'assistant' ? entry : null;
    if (!pending) yield entry;
  }
  if (pending) yield pending;
}

function readResult(part: JsonObject, place: Place): ForeignResult {
  const content = readParts(part['content'], place)?.text ?? jsonText(part['content']);
  return { call: textOf(part['tool_use_id']), name: null, text: content, failed: part['is_error'] === true };
}

/** Keeps signed reasoning, one block per step. No provider accepts reasoning without its signature. */
function keepReasoning(part: JsonObject, parts: Parts, place: Place, origin: Origin | null): void {
  const signature = textOf(part['signature']) ?? textOf(part['thinkingSignature']);
  const text = part['thinking'];
  // The file omits the reasoning's text: there is a signature without text.
  if (text === '' && signature === null) return;
  if (origin === null || signature === null || typeof text !== 'string' || parts.reasoning !== null) {
    noteRepair(
      place.report,
      'reasoning_dropped',
      place.line,
      signature === null ? 'unsigned' : 'no place for it',
    );
    return;
  }
  parts.reasoning = { text, signature, ...origin };
}

function placeholder(what: string, place: Place): string {
  noteRepair(place.report, 'placeholder', place.line, what);
  return `[${what}]`;
}

function partName(part: JsonObject): string {
  const type = textOf(part['type']) ?? 'unknown part';
  return type.startsWith('image') || type === 'input_image' ? 'image' : type.slice(0, 60);
}

/** A foreign value, short enough for an example. */
export function excerpt(value: unknown): string {
  return (typeof value === 'string' ? value : jsonText(value)).slice(0, 80);
}

/**
 * The messages of a conversation: a bare list, `{messages}`, `{traj}`, a state of LangGraph, or an answer of the Responses API with
 * its input. Null for any other value.
 */
export function messagesOf(value: unknown): unknown[] | null {
  if (Array.isArray(value)) return value.some(isObject) ? value : null;
  if (!isObject(value)) return null;
  for (const list of [value['traj'], value['messages'], value['contents']])
    if (Array.isArray(list)) return list;
  const state = value['values'] ?? value['kwargs'];
  if (isObject(state) && Array.isArray(state['messages'])) return state['messages'];
  const { input, output } = value;
  if (!Array.isArray(output) && !Array.isArray(input)) return null;
  if ('role' in value || typeof value['call_id'] === 'string') return null;
  const asked = typeof input === 'string' ? [{ role: 'user', content: input }] : input;
  return [asked, output].flatMap((list) => (Array.isArray(list) ? list : []));
}

/** The `session_N` lists of a LoCoMo sample in order, each with its unparsed time. */
export function sessionsOf(value: JsonObject): { time: unknown; turns: unknown[] }[] {
  const sample = isObject(value['conversation']) ? value['conversation'] : value;
  const found: { number: number; time: unknown; turns: unknown[] }[] = [];
  for (const [key, turns] of Object.entries(sample)) {
    const number = /^session_(\d+)$/.exec(key)?.[1];
    if (number === undefined || !Array.isArray(turns)) continue;
    found.push({ number: Number(number), time: sample[`${key}_date_time`], turns });
  }
  return found.sort((a, b) => a.number - b.number);
}
