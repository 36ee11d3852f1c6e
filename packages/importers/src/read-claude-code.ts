import { type BranchNode, createHold, leftBranches, noteLeft } from './branches.ts';
import { type AssistantEntry, merged, type Parts, plainText, readParts, excerpt } from './parts.ts';
import {
  isObject,
  type JsonObject,
  textOf,
  timeOf,
  addNotes,
  type ImportNotes,
  noteSkip,
  type TranscriptEntry,
  type TranscriptRecord,
} from './troupe.ts';

interface Line extends BranchNode {
  at: number | null;
  type: 'user' | 'assistant' | 'system' | 'queued' | 'other';
  /** Id of the model message that the line is a part of. */
  message: string | null;
  /** Text of a person in this line. */
  prompt: string | null;
  /** Id of the side conversation that it belongs to; null: the main one. */
  side: string | null;
  /** For a summary: the first record that was kept besides it. */
  kept: string | null;
  session: string | null;
}

/**
 * Claude Code session lines. A session is a tree by `parentUuid`: a prompt that was changed or rewound stays in the file, and
 * only the active branch is imported. A model message is several lines with the same `message.id`, one content block each.
 * They are joined, because parallel calls would otherwise look like separate steps.
 */
export async function* readClaudeCode(
  records: AsyncIterable<TranscriptRecord>,
  report: ImportNotes,
): AsyncGenerator<TranscriptEntry, void> {
  const lines = await readLines(records, report);
  const main = lines.filter(({ side }) => side === null);
  if (main.some(isSpoken)) {
    for (const { side, line, id, type } of lines)
      if (side !== null) noteSkip(report, 'sidechain', line, id ?? type);
    yield* readConversation(main, report, true);
    return;
  }
  // Sessions of sub-agents and of the Agent SDK have only side conversations.
  const sides = [...Map.groupBy(lines, ({ side }) => side).values()].filter((own) => own.some(isSpoken));
  if (sides.length <= 1) return yield* readConversation(lines, report, true);
  for (const { notes } of main) addNotes(report, notes);
  for (const own of sides) yield* readConversation(own, report, false);
}

function* readConversation(
  lines: Line[],
  report: ImportNotes,
  alone: boolean,
): Generator<TranscriptEntry, void> {
  yield { kind: 'begin', name: null, alone };
  yield* readBranch(lines, report);
}

function isSpoken({ type, entries }: Line): boolean {
  return entries.length > 0 && (type === 'user' || type === 'assistant');
}

async function readLines(records: AsyncIterable<TranscriptRecord>, report: ImportNotes): Promise<Line[]> {
  const hold = createHold();
  const seen = new Set<string>();
  const lines: Line[] = [];
  const queue: Queued[] = [];
  let kept: string | null = null;
  for await (const { line, value, size } of records) {
    if (!isObject(value) || typeof value['type'] !== 'string') {
      const node = noteLine(line, {});
      noteSkip(node.notes, 'unknown_line', line, value);
      lines.push(node);
      continue;
    }
    const uuid = textOf(value['uuid']);
    if (uuid !== null && seen.has(uuid)) {
      noteSkip(report, 'duplicate_line', line, uuid);
      continue;
    }
    if (value['type'] === 'queue-operation') noteQueued(queue, line, value, report);
    const node = readLine(line, value);
    if (node === null) {
      noteSkip(report, 'metadata', line, value['type']);
      continue;
    }
    if (value['subtype'] === COMPACT_BOUNDARY) kept = keptBy(value);
    if (node.entries[0]?.kind === 'summary') [node.kept, kept] = [kept, null];
    if (uuid !== null && node.entries.length > 0) seen.add(uuid);
    lines.push(node);
    hold(node, size);
  }
  return withQueued(lines, queue, report);
}

/** A line with text, or one that others follow; null for any other. */
function readLine(line: number, value: JsonObject): Line | null {
  const type = typeOf(value);
  const node: Line = { ...noteLine(line, value), type };
  const { notes } = node;
  if (type === 'other') {
    if (node.id === null) return null;
    noteSkip(notes, 'metadata', line, value['type']);
    return node;
  }
  const body = bodyOf(value, type);
  if (!isObject(body) || body['content'] == null) {
    noteSkip(notes, 'unknown_line', line, `no message content: ${excerpt(value['message'])}`);
    return node;
  }
  const parts = readParts(body['content'], { report: notes, line }, originOf(body));
  if (parts === null) {
    noteSkip(notes, 'unknown_line', line, body['content']);
    return node;
  }
  return type === 'assistant' ? answered(node, value, body, parts) : said(node, value, parts);
}

/** A line without text. */
function noteLine(line: number, value: JsonObject): Line {
  const id = textOf(value['uuid']);
  return {
    line,
    at: timeOf(value['timestamp']),
    id,
    parent: parentOf(value),
    kind: 'note',
    take: id ?? `line ${line}`,
    type: 'other',
    side: sideOf(value),
    notes: { repaired: [], skipped: [] },
    entries: [],
    message: null,
    prompt: null,
    kept: null,
    session: textOf(value['sessionId']),
  };
}

function bodyOf(value: JsonObject, type: Line['type']): unknown {
  if (type === 'system') return { content: value['content'] };
  return type === 'queued' ? promptOf(value) : value['message'];
}

function typeOf(value: JsonObject): Line['type'] {
  const type = value['type'];
  if (type === 'attachment')
    return isObject(value['attachment']) && value['attachment']['type'] === 'queued_command'
      ? 'queued'
      : 'other';
  if (type === 'system')
    return textOf(value['content']) !== null && value['subtype'] !== COMPACT_BOUNDARY ? 'system' : 'other';
  return type === 'user' || type === 'assistant' ? type : 'other';
}

function sideOf(value: JsonObject): string | null {
  const task = textOf(value['parent_tool_use_id']);
  if (task !== null) return task;
  return value['isSidechain'] === true ? (textOf(value['agentId']) ?? '') : null;
}

/** Marks where a conversation was compacted; the next line has the summary. */
const COMPACT_BOUNDARY = 'compact_boundary';

/** The line's parent. A compaction begins a new chain, and names the old one. */
function parentOf(value: JsonObject): string | null | undefined {
  const parent = textOf(value['parentUuid']) ?? textOf(value['logicalParentUuid']);
  return parent ?? (value['parentUuid'] === null ? null : undefined);
}

/** The first record that a compaction kept unchanged. */
function keptBy(value: JsonObject): string | null {
  const meta = value['compactMetadata'];
  if (!isObject(meta)) return null;
  const { preservedSegment, preservedMessages } = meta;
  if (isObject(preservedMessages) && Array.isArray(preservedMessages['uuids']))
    return textOf(preservedMessages['uuids'][0]);
  return isObject(preservedSegment) ? textOf(preservedSegment['headUuid']) : null;
}

function originOf(body: JsonObject): { provider: string; model: string } | null {
  const model = textOf(body['model']);
  return model === null ? null : { provider: 'anthropic', model };
}

function answered(
  node: Line,
  value: JsonObject,
  body: JsonObject,
  { text, calls, results, reasoning }: Parts,
): Line {
  const { line, at } = node;
  const failed = value['isApiErrorMessage'] === true;
  const entry: AssistantEntry = failed
    ? { kind: 'assistant', line, at, text: '', calls, reasoning, ended: { how: 'failed', message: text } }
    : { kind: 'assistant', line, at, text, calls, reasoning, ended: null };
  const message = textOf(body['id']);
  const entries = [entry, ...results.map((result) => ({ kind: 'result', line, at, ...result }) as const)];
  return { ...node, kind: 'answer', take: message ?? node.take, message, entries };
}

function said(node: Line, value: JsonObject, { text, results }: Parts): Line {
  const { line, at, type } = node;
  const entries: TranscriptEntry[] = results.map((result) => ({ kind: 'result', line, at, ...result }));
  if (text === '' && results.length > 0) return { ...node, kind: 'step', entries };
  if (value['isCompactSummary'] === true) {
    const files = { read: [], modified: [] };
    return {
      ...node,
      kind: 'step',
      entries: [...entries, { kind: 'summary', line, at, text, keptFrom: line, files }],
    };
  }
  // The program writes such lines itself, under the person's name.
  const isOfProgram =
    type === 'system' ||
    value['isMeta'] === true ||
    !isTyped(type === 'queued' ? value['attachment'] : value);
  entries.push({ kind: 'said', line, at, author: isOfProgram ? 'system' : 'user', text });
  if (isOfProgram) return { ...node, kind: 'note', entries };
  return {
    ...node,
    kind: type === 'user' && results.length === 0 ? 'prompt' : 'step',
    prompt: wordsIn(text),
    entries,
  };
}

/** Removes names of images, which the queue writes differently. */
function wordsIn(text: string): string {
  return text.replaceAll('[image]', '').trim();
}

/** False for notices of tasks, and for text from other sessions. */
function isTyped(value: unknown): boolean {
  if (!isObject(value) || value['isMeta'] === true || value['commandMode'] === 'task-notification')
    return false;
  return (
    !isObject(value['origin']) ||
    textOf(value['origin']['kind']) === null ||
    value['origin']['kind'] === 'human'
  );
}

/** The prompt that a person typed while the agent worked, at the place where the agent read it. */
function promptOf({ attachment }: JsonObject): JsonObject | null {
  return isObject(attachment) ? { content: attachment['prompt'] } : null;
}

type Queued = { line: number; at: number | null; text: string; isWaiting: boolean };

/**
 * Notes what people typed while the agent worked. Except in some versions, text that the agent read is in the file a second time.
 */
function noteQueued(queue: Queued[], line: number, value: JsonObject, report: ImportNotes): void {
  const text = wordsIn(plainText(value['content']));
  switch (value['operation']) {
    case 'enqueue':
      // The results of commands and notices of tasks are in the file anyway.
      if (text !== '' && !/^[/<]/.test(text))
        queue.push({ line, at: timeOf(value['timestamp']), text, isWaiting: true });
      return;
    case 'popAll':
      for (const each of queue.filter(({ isWaiting }) => isWaiting))
        noteSkip(report, 'taken_back', each.line, each.text);
      return void queue.splice(0, queue.length, ...queue.filter(({ isWaiting }) => !isWaiting));
    default: {
      const taken = queue.find((each) => each.isWaiting && (text === '' || each.text === text));
      if (taken) taken.isWaiting = false;
    }
  }
}

/** Adds queued text that is nowhere else in the file, and leaves out the rest. */
function withQueued(lines: Line[], queue: readonly Queued[], report: ImportNotes): Line[] {
  const told = lines.filter((line, i) => {
    if (line.type !== 'queued' || line.prompt === null || !isToldBeside(lines, i)) return true;
    noteSkip(report, 'told_twice', line.line, line.prompt);
    return false;
  });
  if (queue.length === 0) return told;
  const later = new Map<string, number[]>();
  for (const { prompt, line } of told.toReversed()) {
    if (prompt === null) continue;
    const places = later.get(prompt);
    if (places) places.push(line);
    else later.set(prompt, [line]);
  }
  const untold = queue.filter(({ line, text }) => {
    const places = later.get(text) ?? [];
    while ((places.at(-1) ?? Infinity) < line) places.pop();
    return places.pop() === undefined;
  });
  return [...told, ...untold.map(queuedLine)].toSorted((a, b) => a.line - b.line);
}

/** Whether the same text stands before or after a queued line, with no answer in between. */
function isToldBeside(lines: readonly Line[], at: number): boolean {
  return [-1, 1].some((step) => {
    let i = at + step;
    while (lines[i]?.entries.length === 0) i += step;
    return lines[i]?.type === 'user' && lines[i]?.prompt === lines[at]?.prompt;
  });
}

function queuedLine({ line, at, text }: Queued): Line {
  const entries: TranscriptEntry[] = [{ kind: 'said', line, at, author: 'user', text }];
  return { ...noteLine(line, {}), at, kind: 'step', type: 'queued', entries, prompt: text };
}

function* readBranch(lines: Line[], report: ImportNotes): Generator<TranscriptEntry, void> {
  keepLists(lines);
  const isLeft = leftBranches(lines);
  const places = new Map(lines.map(({ id, line }) => [id, line] as const));
  let pending: { id: string | null; entry: AssistantEntry } | null = null;
  for (const [i, each] of lines.entries()) {
    if (isLeft[i] === true && noteLeft(each, report)) continue;
    const { entries, notes, line, message, kept } = each;
    addNotes(report, notes);
    for (const entry of entries) {
      if (pending && entry.kind === 'assistant' && message !== null && pending.id === message) {
        pending.entry = merged(pending.entry, entry, report);
        continue;
      }
      if (pending) yield pending.entry;
      pending = entry.kind === 'assistant' ? { id: message, entry } : null;
      if (entry.kind === 'summary') yield { ...entry, keptFrom: places.get(kept) ?? line };
      else if (!pending) yield entry;
    }
  }
  if (pending) yield pending.entry;
}

/**
 * A line without a parent begins the conversation again if a person wrote it: the first prompt was rewound. In a file with
 * several sessions, or a list by another program without any parents, it follows the line before it instead.
 */
function keepLists(lines: Line[]): void {
  const ids = new Set(lines.map(({ id }) => id));
  const isList = lines.some(({ kind, parent }) => kind === 'answer' && parent === null);
  const isTree = !isList && lines.some(({ parent }) => parent != null && ids.has(parent));
  let session: string | null = null;
  for (const line of lines) {
    const isNew = line.session !== null && session !== null && line.session !== session;
    session = line.session ?? session;
    if (line.parent === null && (!isTree || isNew || line.kind !== 'prompt')) line.parent = undefined;
  }
}
