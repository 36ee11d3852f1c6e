import { bothOf, type ForeignCall, type Parts, readParts, plainText } from './parts.ts';
import {
  isObject,
  type JsonObject,
  textOf,
  timeOf,
  nameOf,
  type ImportNotes,
  noteRepair,
  noteSkip,
  type TranscriptEntry,
} from './troupe.ts';

/** A chat message, or an item of the Responses API. */
export function isOpenAiMessage(value: unknown): value is JsonObject {
  return isObject(value) && (typeof value['role'] === 'string' || isItem(value));
}

/** OpenAI chat messages, and items of the Responses API, in which each call is a separate item. */
export function* readOpenAiMessage(
  line: number,
  message: unknown,
  notes: ImportNotes,
): Generator<TranscriptEntry, void> {
  if (isObject(message) && message['role'] === undefined && isItem(message))
    return yield* readItem(line, message, notes);
  const parts = isObject(message) ? readParts(message['content'], { report: notes, line }) : null;
  if (!isObject(message) || parts === null) {
    noteSkip(notes, 'unknown_line', line, message);
    return;
  }
  const at = timeOf(message['timestamp']) ?? timeOf(message['created_at']) ?? timeOf(message['created']);
  // Some dumps put Anthropic's or the AI SDK's content parts into OpenAI's envelope.
  const results = parts.results.map((result) => ({ kind: 'result', line, at, ...result }) as const);
  if (message['role'] !== 'assistant') yield* results;
  const entry = entryOf(message, parts, { line, at, notes });
  if (entry && !(results.length > 0 && parts.text === '' && entry.kind !== 'assistant')) yield entry;
  if (message['role'] === 'assistant') yield* results;
}

function entryOf(
  message: JsonObject,
  parts: Parts,
  place: Place & { notes: ImportNotes },
): TranscriptEntry | null {
  const { notes, ...at } = place;
  switch (message['role']) {
    case 'user':
      return { kind: 'said', ...at, author: 'user', text: parts.text };
    case 'system':
    case 'developer':
      return { kind: 'said', ...at, author: 'system', text: parts.text };
    case 'assistant':
      return assistantEntry(message, parts, place);
    case 'tool':
    case 'function':
      return resultEntry(message, { ...at, text: parts.text });
    default:
      noteSkip(notes, 'unknown_role', place.line, message['role']);
      return null;
  }
}

type Place = { line: number; at: number | null };

function assistantEntry(
  message: JsonObject,
  parts: { text: string; calls: ForeignCall[] },
  { line, at, notes }: Place & { notes: ImportNotes },
): TranscriptEntry {
  if (textOf(message['reasoning_content']) !== null) noteRepair(notes, 'reasoning_dropped', line, 'unsigned');
  const text = parts.text === '' ? (textOf(message['refusal']) ?? '') : parts.text;
  const calls = bothOf(parts.calls, callsOf(message));
  return { kind: 'assistant', line, at, text, calls, reasoning: null, ended: null };
}

function resultEntry(message: JsonObject, { line, at, text }: Place & { text: string }): TranscriptEntry {
  const call = textOf(message['tool_call_id']);
  return { kind: 'result', line, at, call, name: textOf(message['name']), text, failed: false };
}

function callsOf(message: JsonObject): ForeignCall[] {
  const calls: ForeignCall[] = [];
  const listed = message['tool_calls'];
  for (const call of Array.isArray(listed) ? listed : []) {
    if (isObject(call)) calls.push(callOf(textOf(call['id']), call['function'] ?? call['custom'] ?? call));
  }
  const legacy = message['function_call'];
  if (isObject(legacy)) calls.push(callOf(null, legacy));
  return calls;
}

function callOf(id: string | null, callee: unknown): ForeignCall {
  if (!isObject(callee)) return { id, name: null, args: null, partial: false };
  const args = callee['arguments'] ?? callee['input'] ?? callee['args'];
  return { id, name: textOf(callee['name']), args, partial: false };
}

/** Items with a role are read as messages. https://platform.openai.com/docs/api-reference/responses/object */
function isItem({ type }: JsonObject): boolean {
  return typeof type === 'string' && (/_call(?:_output)?$/.test(type) || OTHER_ITEMS.has(type));
}

const OTHER_ITEMS = new Set([
  'reasoning',
  'item_reference',
  'compaction',
  'compaction_summary',
  'mcp_list_tools',
  'mcp_approval_request',
  'mcp_approval_response',
]);

export function* readItem(
  line: number,
  item: JsonObject,
  notes: ImportNotes,
  at = timeOf(item['created_at']),
): Generator<TranscriptEntry, void> {
  const type = nameOf(item['type']);
  const call = textOf(item['call_id']) ?? textOf(item['id']);
  if (type.endsWith('_output'))
    return yield { kind: 'result', line, at, call, name: null, ...outputOf(item['output']) };
  if (type === 'reasoning') return noteRepair(notes, 'reasoning_dropped', line, 'sealed for its vendor');
  if (!type.endsWith('_call')) return noteSkip(notes, 'metadata', line, type);
  const name = textOf(item['name']) ?? type.replace(/_call$/, '');
  const calls = [{ id: call, name, args: argumentsOf(item, type), partial: false }];
  yield { kind: 'assistant', line, at, text: '', calls, reasoning: null, ended: null, joins: true };
  // The vendor's own tools have call and result in one item.
  const output = item['error'] ?? firstOf(item, ['output', 'results', 'outputs']);
  const failed = item['error'] != null;
  if (output != null) yield { kind: 'result', line, at, call, name, text: plainText(output), failed };
}

function argumentsOf(item: JsonObject, type: string): unknown {
  const args = firstOf(item, ['arguments', 'input', 'action', 'queries', 'code']) ?? {};
  return typeof args === 'string' && type !== 'function_call' ? asObject(args) : args;
}

function firstOf(item: JsonObject, keys: readonly string[]): unknown {
  return keys.map((key) => item[key]).find((value) => value != null);
}

/** JSON unchanged; other text, which custom tools take, as a field of an object. */
function asObject(text: string): unknown {
  return text.trimStart().startsWith('{') ? text : { input: text };
}

/** The output of a call: a text, parts, or an object as Codex writes it. */
function outputOf(output: unknown): { text: string; failed: boolean } {
  const inner = isObject(output) && 'content' in output ? output : { content: output, success: true };
  return { text: plainText(inner['content']), failed: inner['success'] === false };
}
