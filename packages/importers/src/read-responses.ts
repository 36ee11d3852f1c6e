import { plainText } from './parts.ts';
import { isObject, type JsonObject, nameOf, textOf, timeOf } from './shape.ts';
import { type ImportNotes, noteRepair, noteSkip, type TranscriptEntry } from './troupe.ts';

/** Items with a role are read as messages. https://platform.openai.com/docs/api-reference/responses/object */
export function isItem({ type }: JsonObject): boolean {
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
  // The vendor's own tools tell call and result in one item.
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

/** Free text, as custom tools take it, under a name; JSON as it is. */
function asObject(text: string): unknown {
  return text.trimStart().startsWith('{') ? text : { input: text };
}

/** The output of a call: a text, parts, or an object that Codex writes. */
function outputOf(output: unknown): { text: string; failed: boolean } {
  const inner = isObject(output) && 'content' in output ? output : { content: output, success: true };
  return { text: plainText(inner['content']), failed: inner['success'] === false };
}
