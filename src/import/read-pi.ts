import type { AssistantEntry, Entry, JsonRecord } from './entry.ts';
import { readParts } from './parts.ts';
import type { Parts } from './parts.ts';
import { excerpt, noteSkip } from './report.ts';
import type { ImportReport } from './report.ts';
import { isObject, textOf, timeOf } from './shape.ts';
import type { JsonObject } from './shape.ts';

/** Session logs of the pi coding agent: `{type: 'message', message: {role, content: parts}}`, other types are settings. */
export async function* readPi(
  records: AsyncIterable<JsonRecord>,
  report: ImportReport,
): AsyncGenerator<Entry, void> {
  yield { kind: 'begin', name: null, alone: true };
  for await (const { line, value } of records) {
    const entry = readLine(line, value, report);
    if (entry) yield entry;
  }
}

function readLine(line: number, value: unknown, report: ImportReport): Entry | null {
  if (!isObject(value) || typeof value['type'] !== 'string') {
    noteSkip(report, 'unknown_line', line, excerpt(value));
    return null;
  }
  if (value['type'] !== 'message') {
    noteSkip(report, 'metadata', line, value['type']);
    return null;
  }
  const message = value['message'];
  const origin = originOf(message);
  const parts = isObject(message) ? readParts(message['content'], { report, line }, origin) : null;
  if (!isObject(message) || parts === null) {
    noteSkip(report, 'unknown_line', line, excerpt(value));
    return null;
  }
  const at = timeOf(value['timestamp']) ?? timeOf(message['timestamp']);
  switch (message['role']) {
    case 'user':
      return { kind: 'said', line, at, author: 'user', text: parts.text };
    case 'system':
      return { kind: 'said', line, at, author: 'system', text: parts.text };
    case 'assistant':
      return assistantEntry(line, at, message, parts);
    case 'toolResult': {
      const call = textOf(message['toolCallId']);
      const name = textOf(message['toolName']);
      return { kind: 'result', line, at, call, name, text: parts.text, failed: message['isError'] === true };
    }
    default:
      noteSkip(report, 'unknown_role', line, excerpt(message['role']));
      return null;
  }
}

function assistantEntry(line: number, at: number | null, message: JsonObject, parts: Parts): AssistantEntry {
  const { text, calls, reasoning } = parts;
  return { kind: 'assistant', line, at, text, calls, reasoning, ended: endingOf(message) };
}

function endingOf(message: JsonObject): AssistantEntry['ended'] {
  const reason = message['stopReason'];
  if (reason !== 'aborted' && reason !== 'error') return null;
  const how = reason === 'aborted' ? 'aborted' : 'failed';
  return { how, message: textOf(message['errorMessage']) ?? `the provider ended with ${reason}` };
}

function originOf(message: unknown): { provider: string; model: string } | null {
  if (!isObject(message)) return null;
  const provider = textOf(message['provider']);
  const model = textOf(message['model']);
  return provider === null || model === null ? null : { provider, model };
}
