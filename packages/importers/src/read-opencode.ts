import type { AssistantEntry, ForeignCall, ForeignResult } from './parts.ts';
import {
  isObject,
  type JsonObject,
  nameOf,
  textOf,
  timeOf,
  type ImportNotes,
  noteRepair,
  noteSkip,
  type TranscriptEntry,
  type TranscriptRecord,
} from './troupe.ts';

/** A message of opencode: `{info: {role, …}, parts}`. */
export function isOpencodeMessage(value: unknown): value is JsonObject {
  return isObject(value) && isObject(value['info']) && Array.isArray(value['parts']);
}

/**
 * Sessions of `opencode export`: `{info, messages: [{info, parts}]}`, and lists of such messages as its server gives them.
 * https://github.com/sst/opencode/blob/dev/packages/opencode/src/session/message-v2.ts
 */
export async function* readOpencode(
  records: AsyncIterable<TranscriptRecord>,
  report: ImportNotes,
): AsyncGenerator<TranscriptEntry, void> {
  let isLoose = false;
  for await (const { line, value } of records) {
    const listed = Array.isArray(value) ? value : isObject(value) ? value['messages'] : null;
    const messages: unknown[] = Array.isArray(listed) ? listed : [value];
    if (!Array.isArray(listed) && !isOpencodeMessage(value)) {
      noteSkip(report, 'unknown_line', line, value);
      continue;
    }
    if (!isLoose || Array.isArray(listed)) yield { kind: 'begin', name: null, alone: !Array.isArray(listed) };
    isLoose = !Array.isArray(listed);
    const info = isObject(value) && isObject(value['info']) ? value['info'] : {};
    yield* readSession(messages, info, line, report);
  }
}

function* readSession(
  messages: unknown[],
  session: JsonObject,
  line: number,
  report: ImportNotes,
): Generator<TranscriptEntry, void> {
  // Undone messages stay in the session until the next prompt.
  const undone = isObject(session['revert']) ? textOf(session['revert']['messageID']) : null;
  let isUndone = false;
  let entries = 0;
  let tail: string | null = null;
  const begins = new Map<string, number>();
  for (const message of messages) {
    if (!isOpencodeMessage(message) || !isObject(message['info'])) {
      noteSkip(report, 'unknown_line', line, message);
      continue;
    }
    const { info } = message;
    isUndone ||= undone !== null && info['id'] === undone;
    if (isUndone) {
      noteSkip(report, 'other_branch', line, info['id']);
      continue;
    }
    begins.set(nameOf(info['id']), entries);
    const parts: unknown[] = Array.isArray(message['parts']) ? message['parts'] : [];
    tail = tailOf(parts) ?? tail;
    for (const entry of readMessage(info, parts, line, report)) {
      // A compaction keeps the messages from `tail_start_id` on.
      const kept = entry.kind === 'summary' ? entries - (begins.get(tail ?? '') ?? entries) : 0;
      yield entry.kind === 'summary' ? { ...entry, kept } : entry;
      entries += 1;
    }
  }
}

function tailOf(parts: readonly unknown[]): string | null {
  const compaction = parts.find((part) => isObject(part) && part['type'] === 'compaction');
  return isObject(compaction) ? (textOf(compaction['tail_start_id']) ?? '') : null;
}

function said(line: number, at: number | null, author: 'user' | 'system', text: string): TranscriptEntry {
  return { kind: 'said', line, at, author, text };
}

type Read = { texts: string[]; ofProgram: string[]; calls: ForeignCall[]; results: ForeignResult[] };

function* readMessage(
  info: JsonObject,
  parts: unknown[],
  line: number,
  report: ImportNotes,
): Generator<TranscriptEntry, void> {
  const at = isObject(info['time']) ? timeOf(info['time']['created']) : null;
  if (info['role'] === 'user') {
    const { texts, ofProgram } = readParts(parts, line, report);
    if (ofProgram.length > 0) yield said(line, at, 'system', ofProgram.join('\n'));
    if (texts.length > 0 || parts.length === 0) yield said(line, at, 'user', texts.join('\n'));
    return;
  }
  if (info['role'] !== 'assistant') return noteSkip(report, 'unknown_role', line, info['role']);
  const steps = stepsOf(parts).map((own) => readParts(own, line, report));
  if (info['summary'] === true) {
    const text = steps.flatMap(({ texts }) => texts).join('\n');
    return yield { kind: 'summary', line, at, text, keptFrom: line, files: { read: [], modified: [] } };
  }
  const told = steps.filter(({ texts, calls }) => texts.length > 0 || calls.length > 0);
  const ended = endingOf(info['error']);
  for (const { texts, calls, results } of told) {
    const own = calls.length === 0 ? ended : null;
    yield { kind: 'assistant', line, at, text: texts.join('\n'), calls, reasoning: null, ended: own };
    for (const result of results) yield { kind: 'result', line, at, ...result };
  }
  if (told.length > 0 && (ended === null || told.at(-1)?.calls.length === 0)) return;
  yield { kind: 'assistant', line, at, text: '', calls: [], reasoning: null, ended };
}

/** The parts of each step. A step begins at `step-start`. */
function stepsOf(parts: unknown[]): unknown[][] {
  const steps: unknown[][] = [[]];
  for (const part of parts) {
    if (isObject(part) && part['type'] === 'step-start') steps.push([]);
    else steps.at(-1)?.push(part);
  }
  return steps;
}

function endingOf(error: unknown): AssistantEntry['ended'] {
  if (!isObject(error)) return null;
  const message = isObject(error['data']) ? textOf(error['data']['message']) : null;
  const name = textOf(error['name']) ?? 'UnknownError';
  return { how: name === 'MessageAbortedError' ? 'aborted' : 'failed', message: message ?? name };
}

function readParts(parts: unknown[], line: number, notes: ImportNotes): Read {
  const read: Read = { texts: [], ofProgram: [], calls: [], results: [] };
  for (const part of parts) {
    if (!isObject(part)) noteSkip(notes, 'unknown_line', line, part);
    else readPart(part, read, line, notes);
  }
  return read;
}

function readPart(part: JsonObject, read: Read, line: number, notes: ImportNotes): void {
  const type = nameOf(part['type']);
  const text = textOf(part['text']);
  switch (type) {
    case 'text':
      if (part['ignored'] === true) noteSkip(notes, 'metadata', line, text);
      // opencode adds the contents of files that the person named.
      else if (text !== null) (part['synthetic'] === true ? read.ofProgram : read.texts).push(text);
      return;
    case 'tool':
      return addTool(part, read);
    case 'reasoning':
      return noteRepair(notes, 'reasoning_dropped', line, 'unsigned');
    case 'file': {
      noteRepair(notes, 'placeholder', line, part['filename']);
      const name = textOf(part['filename']);
      return void read.texts.push(name === null ? '[file]' : `[file: ${name.slice(0, 200)}]`);
    }
    case 'subtask':
      return void read.texts.push(textOf(part['prompt']) ?? textOf(part['description']) ?? '');
    default:
      noteSkip(notes, 'metadata', line, type);
  }
}

function addTool(part: JsonObject, { calls, results }: Read): void {
  const state = isObject(part['state']) ? part['state'] : {};
  const [id, name] = [textOf(part['callID']), textOf(part['tool'])];
  calls.push({ id, name, args: state['input'] ?? {}, partial: false });
  const failed = state['status'] === 'error';
  const text = failed ? textOf(state['error']) : state['output'];
  if (typeof text === 'string') results.push({ call: id, name, text, failed });
}
