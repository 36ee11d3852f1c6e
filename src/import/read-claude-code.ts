import { type AssistantEntry, type Entry, type JsonRecord, readParts } from './entry.ts';
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
  if (!isMessageType(type) || (type === 'system' && !isSaid(value))) {
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

function isMessageType(type: string): type is MessageLine['type'] {
  return type === 'user' || type === 'assistant' || type === 'system';
}

/** Marks where a conversation was compacted; the summary is in the line after it. */
const COMPACT_BOUNDARY = 'compact_boundary';

function isSaid(value: JsonObject): boolean {
  return textOf(value['content']) !== null && value['subtype'] !== COMPACT_BOUNDARY;
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
  const { line, at, type, body, envelope } = message;
  const parts = readParts(body['content'], { report, line });
  if (parts === null) {
    noteSkip(report, 'unknown_line', line, excerpt(body['content']));
    return;
  }
  for (const result of parts.results) yield { kind: 'result', line, at, ...result };
  if (parts.text === '' && parts.results.length > 0) return;
  if (envelope['isCompactSummary'] === true) {
    yield { kind: 'summary', line, at, text: parts.text, keptFrom: line, files: { read: [], modified: [] } };
    return;
  }
  // The program writes such lines itself, in the person's place.
  const isOfProgram = type === 'system' || envelope['isMeta'] === true;
  yield { kind: 'said', line, at, author: isOfProgram ? 'system' : 'user', text: parts.text };
}
