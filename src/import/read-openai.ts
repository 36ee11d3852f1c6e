import { type Entry, type ForeignCall, type JsonRecord, readParts } from './entry.ts';
import { excerpt, noteRepair, noteSkip } from './report.ts';
import type { ImportReport } from './report.ts';
import { isObject, messagesOf, textOf, timeOf } from './shape.ts';
import type { JsonObject } from './shape.ts';

/** OpenAI chat messages: records that are whole conversations, or loose messages that together are one. */
export async function* readOpenAi(
  records: AsyncIterable<JsonRecord>,
  report: ImportReport,
): AsyncGenerator<Entry, void> {
  let loose = false;
  for await (const { line, value } of records) {
    const messages = messagesOf(value);
    if (messages !== null) {
      loose = false;
      yield { kind: 'begin', name: null, alone: false };
      for (const message of messages) yield* readMessage(line, message, report);
    } else if (isObject(value) && typeof value['role'] === 'string') {
      if (!loose) yield { kind: 'begin', name: null, alone: true };
      loose = true;
      yield* readMessage(line, value, report);
    } else {
      noteSkip(report, 'unknown_line', line, excerpt(value));
    }
  }
}

function* readMessage(line: number, message: unknown, report: ImportReport): Generator<Entry, void> {
  const parts = isObject(message) ? readParts(message['content'], { report, line }) : null;
  if (!isObject(message) || parts === null) {
    noteSkip(report, 'unknown_line', line, excerpt(message));
    return;
  }
  const at = timeOf(message['timestamp']) ?? timeOf(message['created_at']) ?? timeOf(message['created']);
  // Some dumps put Anthropic's content parts into OpenAI's envelope.
  for (const result of parts.results) yield { kind: 'result', line, at, ...result };
  switch (message['role']) {
    case 'user':
      if (parts.text === '' && parts.results.length > 0) return;
      return yield { kind: 'said', line, at, author: 'user', text: parts.text };
    case 'system':
    case 'developer':
      return yield { kind: 'said', line, at, author: 'system', text: parts.text };
    case 'assistant':
      return yield assistantEntry(message, parts, { line, at, report });
    case 'tool':
    case 'function':
      return yield resultEntry(message, { line, at, text: parts.text });
    default:
      noteSkip(report, 'unknown_role', line, excerpt(message['role']));
  }
}

type Place = { line: number; at: number | null };

function assistantEntry(
  message: JsonObject,
  parts: { text: string; calls: ForeignCall[] },
  { line, at, report }: Place & { report: ImportReport },
): Entry {
  if (textOf(message['reasoning_content']) !== null)
    noteRepair(report, 'reasoning_dropped', line, 'unsigned');
  const text = parts.text === '' ? (textOf(message['refusal']) ?? '') : parts.text;
  const calls = [...parts.calls, ...callsOf(message)];
  return { kind: 'assistant', line, at, text, calls, reasoning: null, ended: null };
}

function resultEntry(message: JsonObject, { line, at, text }: Place & { text: string }): Entry {
  const call = textOf(message['tool_call_id']);
  return { kind: 'result', line, at, call, name: textOf(message['name']), text, failed: false };
}

function callsOf(message: JsonObject): ForeignCall[] {
  const calls: ForeignCall[] = [];
  const listed = message['tool_calls'];
  for (const call of Array.isArray(listed) ? listed : []) {
    if (isObject(call)) calls.push(callOf(textOf(call['id']), call['function'] ?? call['custom']));
  }
  const legacy = message['function_call'];
  if (isObject(legacy)) calls.push(callOf(null, legacy));
  return calls;
}

function callOf(id: string | null, callee: unknown): ForeignCall {
  if (!isObject(callee)) return { id, name: null, args: null, partial: false };
  return { id, name: textOf(callee['name']), args: callee['arguments'] ?? callee['input'], partial: false };
}
