import { activeBranch, type BranchNode, createHold } from './branches.ts';
import { type AssistantEntry, type Parts, readParts, type SaidEntry, type SummaryEntry } from './parts.ts';
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

/**
 * Session logs of the pi coding agent: one `{type, timestamp, …}` per line. From version 2 on they are a tree by `parentId`,
 * and the branch of the last entry is the active one.
 * https://github.com/earendil-works/pi/blob/main/packages/coding-agent/docs/session-format.md
 *   message         `message` has a role; see `readMessage`
 *   compaction      a summary of everything before the first kept entry
 *   branch_summary  a summary of a branch that was left
 *   custom_message  an extension's text for the model
 * All other types are settings and names of the session.
 */
export async function* readPi(
  records: AsyncIterable<TranscriptRecord>,
  report: ImportNotes,
): AsyncGenerator<TranscriptEntry, void> {
  const hold = createHold();
  const places = createPlaces();
  const nodes: BranchNode[] = [];
  yield { kind: 'begin', name: null, alone: true };
  for await (const { line, value, size } of records) {
    places.add(line, value);
    const notes: ImportNotes = { repaired: [], skipped: [] };
    const entry = readLine(line, value, places, notes);
    if (!isObject(value) || value['type'] === 'session') {
      addNotes(report, notes);
      continue;
    }
    const id = textOf(value['id']);
    const parent = value['parentId'] === null ? null : (textOf(value['parentId']) ?? undefined);
    const entries = entry ? [entry, ...retained(value, nodes, { line, notes })] : [];
    const node: BranchNode = { line, id, parent, kind: 'any', take: id ?? `line ${line}`, entries, notes };
    nodes.push(node);
    hold(node, size);
  }
  yield* activeBranch(nodes, report);
}

/** The entries that a compaction kept unchanged, if the file does not have them earlier: a session may begin with its compaction. */
function retained(
  value: JsonObject,
  before: readonly BranchNode[],
  place: { line: number; notes: ImportNotes },
): TranscriptEntry[] {
  const tail = value['type'] === 'compaction' ? value['retainedTail'] : null;
  if (!Array.isArray(tail) || before.some(({ entries }) => entries.length > 0)) return [];
  const { line, notes } = place;
  return tail.flatMap((message) => (isObject(message) && readMessage(line, null, { message }, notes)) || []);
}

/** Finds the line of a compaction's first kept entry: by id, in older files by number, in newer ones by count. */
function createPlaces() {
  const lines: number[] = [];
  const messages: number[] = [];
  const byId = new Map<string, number>();
  return {
    add(line: number, value: unknown): void {
      lines.push(line);
      if (!isObject(value)) return;
      if (value['type'] === 'message') messages.push(line);
      const id = textOf(value['id']);
      if (id !== null) byId.set(id, line);
    },
    /** The line of the first entry that a compaction kept; null if the file names none. */
    firstKept(compaction: JsonObject): number | null {
      const id = textOf(compaction['firstKeptEntryId']);
      const index = compaction['firstKeptEntryIndex'];
      const tail = compaction['retainedTail'];
      if (id !== null) return byId.get(id) ?? null;
      if (Array.isArray(tail) && tail.length > 0) return messages.at(-tail.length) ?? null;
      return (typeof index === 'number' ? lines[index] : undefined) ?? null;
    },
  };
}

type Places = ReturnType<typeof createPlaces>;

function readLine(line: number, value: unknown, places: Places, report: ImportNotes): TranscriptEntry | null {
  if (!isObject(value) || typeof value['type'] !== 'string') {
    noteSkip(report, 'unknown_line', line, value);
    return null;
  }
  const at = timeOf(value['timestamp']);
  switch (value['type']) {
    case 'message':
      return readMessage(line, at, value, report);
    case 'compaction':
      return summaryEntry(line, at, value, places.firstKept(value) ?? line);
    case 'branch_summary':
      return branchEntry(line, at, value);
    case 'custom_message':
      return ofProgram(line, at, value, report);
    default:
      noteSkip(report, 'metadata', line, value['type']);
      return null;
  }
}

function readMessage(
  line: number,
  lineAt: number | null,
  value: JsonObject,
  report: ImportNotes,
): TranscriptEntry | null {
  const message = value['message'];
  if (!isObject(message)) {
    noteSkip(report, 'unknown_line', line, value);
    return null;
  }
  const at = lineAt ?? timeOf(message['timestamp']);
  switch (message['role']) {
    case 'bashExecution':
      return commandEntry(line, at, message, report);
    case 'compactionSummary':
      return summaryEntry(line, at, message, line);
    case 'branchSummary':
      return branchEntry(line, at, message);
    // `hookMessage` is the former name.
    case 'custom':
    case 'hookMessage':
      return ofProgram(line, at, message, report);
    default:
      return spokenEntry(line, at, message, report);
  }
}

function spokenEntry(
  line: number,
  at: number | null,
  message: JsonObject,
  report: ImportNotes,
): TranscriptEntry | null {
  const parts = readParts(message['content'], { report, line }, originOf(message));
  if (parts === null) {
    noteSkip(report, 'unknown_line', line, message);
    return null;
  }
  switch (message['role']) {
    case 'user':
    case 'system':
      return { kind: 'said', line, at, author: message['role'], text: parts.text };
    case 'assistant':
      return assistantEntry(line, at, message, parts);
    case 'toolResult': {
      const call = textOf(message['toolCallId']);
      const name = textOf(message['toolName']);
      return { kind: 'result', line, at, call, name, text: parts.text, failed: message['isError'] === true };
    }
    default:
      noteSkip(report, 'unknown_role', line, message['role']);
      return null;
  }
}

function assistantEntry(
  line: number,
  at: number | null,
  message: JsonObject,
  { text, calls, reasoning }: Parts,
): AssistantEntry {
  return { kind: 'assistant', line, at, text, calls, reasoning, ended: endingOf(message) };
}

function endingOf(message: JsonObject): AssistantEntry['ended'] {
  const reason = message['stopReason'];
  if (reason !== 'aborted' && reason !== 'error') return null;
  const how = reason === 'aborted' ? 'aborted' : 'failed';
  return { how, message: textOf(message['errorMessage']) ?? `the provider ended with ${reason}` };
}

function originOf(message: JsonObject): { provider: string; model: string } | null {
  const provider = textOf(message['provider']);
  const model = textOf(message['model']);
  return provider === null || model === null ? null : { provider, model };
}

/** A command that the person ran beside the agent, as the person's message with its result. */
function commandEntry(
  line: number,
  at: number | null,
  message: JsonObject,
  report: ImportNotes,
): SaidEntry | null {
  const command = textOf(message['command']);
  if (command === null) {
    noteSkip(report, 'unknown_line', line, message);
    return null;
  }
  const said: SaidEntry = { kind: 'said', line, at, author: 'user', text: commandText(command, message) };
  return message['excludeFromContext'] === true ? { ...said, forPeople: true } : said;
}

function commandText(command: string, message: JsonObject): string {
  const { exitCode, cancelled, truncated } = message;
  const output = textOf(message['output'])?.trimEnd();
  const shown = [`$ ${command}`, ...(output ? [output] : [])].join('\n');
  const fence = '`'.repeat(Math.max(3, longestRun(shown) + 1));
  const file = textOf(message['fullOutputPath']);
  const notes = [
    ...(output ? [] : ['There was no output.']),
    ...(truncated === true ? [`The output is cut${file === null ? '' : `; all of it: ${file}`}.`] : []),
    ...(cancelled === true ? ['The command was cancelled.'] : []),
    ...(typeof exitCode === 'number' && exitCode !== 0 ? [`Exit code: ${exitCode}.`] : []),
  ];
  return ['I ran a command:', fence, shown, fence, ...notes].join('\n');
}

/** Length of the longest run of backticks. */
function longestRun(text: string): number {
  let longest = 0;
  for (const [run] of text.matchAll(/`+/g)) longest = Math.max(longest, run.length);
  return longest;
}

function summaryEntry(line: number, at: number | null, value: JsonObject, keptFrom: number): SummaryEntry {
  const details = isObject(value['details']) ? value['details'] : {};
  const files = { read: namesIn(details['readFiles']), modified: namesIn(details['modifiedFiles']) };
  return { kind: 'summary', line, at, text: textOf(value['summary']) ?? '', keptFrom, files };
}

function namesIn(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((each): each is string => typeof each === 'string') : [];
}

function branchEntry(line: number, at: number | null, value: JsonObject): SaidEntry {
  const summary = textOf(value['summary']);
  const text =
    summary === null ? '' : `Summary of a branch of this conversation that was left:\n\n${summary}`;
  return { kind: 'said', line, at, author: 'system', text };
}

/** Text for the model that the person did not write. */
function ofProgram(
  line: number,
  at: number | null,
  value: JsonObject,
  report: ImportNotes,
): SaidEntry | null {
  const parts = readParts(value['content'], { report, line });
  if (parts) return { kind: 'said', line, at, author: 'system', text: parts.text };
  noteSkip(report, 'unknown_line', line, value);
  return null;
}
