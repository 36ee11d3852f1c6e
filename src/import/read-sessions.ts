import { type AssistantEntry, type Entry, type JsonRecord, type Parts, readParts } from './entry.ts';
import { excerpt, type ImportReport, noteRepair, noteSkip } from './report.ts';
import { isObject, type JsonObject, textOf, timeOf } from './shape.ts';

/**
 * Claude Code session lines, in file order. A model message is several lines with the same `message.id`, one content
 * block each. They are joined, because parallel calls would otherwise look like separate steps.
 */
export async function* readClaudeCode(
  records: AsyncIterable<JsonRecord>,
  report: ImportReport,
): AsyncGenerator<Entry, void> {
  const seen = new Set<string>();
  let pending: { id: string | null; entry: AssistantEntry } | null = null;
  yield { kind: 'begin', name: null, alone: true };
  for await (const { line, value } of records) {
    const message = messageLine(line, value, seen, report);
    if (message === null) continue;
    if (message.type === 'assistant') {
      const entry = assistantEntry(message, report);
      if (entry === null) continue;
      const id = textOf(message.body['id']);
      if (pending && id !== null && pending.id === id) {
        pending = { id, entry: merged(pending.entry, entry, report) };
        continue;
      }
      if (pending) yield pending.entry;
      pending = { id, entry };
      continue;
    }
    if (pending) yield pending.entry;
    pending = null;
    yield* userEntries(message, report);
  }
  if (pending) yield pending.entry;
}

type MessageLine = {
  line: number;
  at: number | null;
  type: 'user' | 'assistant' | 'system';
  envelope: JsonObject;
  body: JsonObject;
};

function messageLine(
  line: number,
  value: unknown,
  seen: Set<string>,
  report: ImportReport,
): MessageLine | null {
  if (!isObject(value) || typeof value['type'] !== 'string') {
    noteSkip(report, 'unknown_line', line, excerpt(value));
    return null;
  }
  const type = value['type'];
  if (value['isSidechain'] === true) {
    noteSkip(report, 'sidechain', line, excerpt(value['uuid'] ?? type));
    return null;
  }
  const body = type === 'system' ? { content: value['content'] } : value['message'];
  if (type !== 'user' && type !== 'assistant' && (type !== 'system' || textOf(value['content']) === null)) {
    noteSkip(report, 'metadata', line, type);
    return null;
  }
  if (!isObject(body) || body['content'] == null) {
    noteSkip(report, 'unknown_line', line, `no message content: ${excerpt(value['message'])}`);
    return null;
  }
  const uuid = textOf(value['uuid']);
  if (uuid !== null && seen.has(uuid)) {
    noteSkip(report, 'duplicate_line', line, uuid);
    return null;
  }
  if (uuid !== null) seen.add(uuid);
  return { line, at: timeOf(value['timestamp']), type, envelope: value, body };
}

function assistantEntry(message: MessageLine, report: ImportReport): AssistantEntry | null {
  const { line, at, body, envelope } = message;
  const model = textOf(body['model']);
  const origin = model === null ? null : { provider: 'anthropic', model };
  const parts = readParts(body['content'], { report, line }, origin);
  if (parts === null) {
    noteSkip(report, 'unknown_line', line, excerpt(body['content']));
    return null;
  }
  const { text, calls, reasoning } = parts;
  const failed = envelope['isApiErrorMessage'] === true;
  if (!failed) return { kind: 'assistant', line, at, text, calls, reasoning, ended: null };
  return { kind: 'assistant', line, at, text: '', calls, reasoning, ended: { how: 'failed', message: text } };
}

function merged(first: AssistantEntry, next: AssistantEntry, report: ImportReport): AssistantEntry {
  if (first.reasoning && next.reasoning)
    noteRepair(report, 'reasoning_dropped', next.line, 'no place for it');
  return {
    ...first,
    text: [first.text, next.text].filter((text) => text !== '').join('\n'),
    calls: [...first.calls, ...next.calls],
    reasoning: first.reasoning ?? next.reasoning,
    ended: first.ended ?? next.ended,
  };
}

function* userEntries(message: MessageLine, report: ImportReport): Generator<Entry, void> {
  const { line, at, type, body } = message;
  const parts = readParts(body['content'], { report, line });
  if (parts === null) {
    noteSkip(report, 'unknown_line', line, excerpt(body['content']));
    return;
  }
  for (const result of parts.results) yield { kind: 'result', line, at, ...result };
  if (parts.text === '' && parts.results.length > 0) return;
  yield { kind: 'said', line, at, author: type === 'system' ? 'system' : 'user', text: parts.text };
}

/** Session logs of the pi coding agent: `{type: 'message', message: {role, content: parts}}`. Other types are settings. */
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
      return piAssistant(line, at, message, parts);
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

function piAssistant(line: number, at: number | null, message: JsonObject, parts: Parts): AssistantEntry {
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
