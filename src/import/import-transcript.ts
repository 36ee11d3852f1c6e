import { TroupeError } from '../base/errors.ts';
import type { AgentId, ConversationId } from '../events/index.ts';
import type { Slices } from '../base/slices.ts';
import { DraftWriter, type ImportAuthors, type ImportItem } from './draft-writer.ts';
import type { ContentEntry, Entry, FormatReader, JsonRecord, NamedEntry } from './entry.ts';
import { detectFormat } from './detect-format.ts';
import {
  type Format,
  formatList,
  type ImportReport,
  newImportReport,
  noteSkip,
  skipCount,
  skippedWords,
} from './report.ts';
import { readChatGpt } from './read-chatgpt.ts';
import { readClaudeCode } from './read-claude-code.ts';
import { readCodex } from './read-codex.ts';
import { readDialogue, readLocomo } from './read-dialogue.ts';
import { readMessages } from './read-messages.ts';
import { readOpencode } from './read-opencode.ts';
import { readPi } from './read-pi.ts';
import { readTroupe } from './troupe-format.ts';
import { readRecords } from './record.ts';

export type ImportOptions = {
  format?: Format | 'auto' | undefined;
  /** The agent that speaks for the transcript's assistant. */
  agent: AgentId;
  agentName?: string | undefined;
  user?: { id: string; name: string } | undefined;
  conversation?: string | undefined;
  fileName?: string | undefined;
  /** The work's slices. Default: none, for scripts, which run alone. */
  slices?: Slices | undefined;
};

const READERS: Record<Format, FormatReader> = {
  troupe: readTroupe,
  pi: readPi,
  'claude-code': readClaudeCode,
  codex: readCodex,
  opencode: readOpencode,
  openai: readMessages,
  'ai-sdk': readMessages,
  langchain: readMessages,
  gemini: readMessages,
  chatgpt: readChatGpt,
  dialogue: readDialogue,
  locomo: readLocomo,
};

/** Values that are checked before the format counts as unknown, and lines that are read for them. */
const DETECTION_VALUES = 64;
const DETECTION_LINES = 1_000;
/** A file of which so many lines, and most, cannot be read is no transcript. */
const MOST_UNREAD = 10_000;

/**
 * Reads a transcript as drafts, one at a time. Memory holds one record; the first conversation in formats with several per
 * file; the words of a session that is a tree (`branches.ts`). The report fills with the drafts and is complete when the generator ends.
 */
export async function* importTranscript(
  chunks: AsyncIterable<string | Uint8Array>,
  options: ImportOptions,
  report: ImportReport = newImportReport(),
): AsyncGenerator<ImportItem, ImportReport> {
  const records = jsonRecords(chunks, options, report);
  try {
    const { format, head } = await chooseFormat(records, options, report);
    report.format = format;
    const entries = READERS[format](chained(head, records), report);
    const authors = authorsOf(options);
    let writer: DraftWriter | null = null;
    for await (const entry of nameConversations(entries, options)) {
      if (entry.kind === 'begin') {
        writer?.finish();
        writer = new DraftWriter(entry.conversation, authors, report);
        report.conversations.push(entry.conversation);
        continue;
      }
      for (const item of writer?.write(entry) ?? []) {
        noteItem(report, item, 1);
        yield item;
      }
    }
    writer?.finish();
    refuseNothing(report, format);
  } finally {
    await records.return();
  }
  return report;
}

/** Adds an item to the counts of the report, or with -1 takes it out again. */
export function noteItem(report: ImportReport, { draft }: ImportItem, by: 1 | -1): void {
  const kind = draft?.kind ?? 'compaction';
  report.events += by;
  report.kinds[kind] = (report.kinds[kind] ?? 0) + by;
}

async function* jsonRecords(
  chunks: AsyncIterable<string | Uint8Array>,
  { slices }: ImportOptions,
  report: ImportReport,
): AsyncGenerator<JsonRecord, void> {
  for await (const record of readRecords(chunks, slices)) {
    report.lines += 1;
    const { line, size } = record;
    if (record.json) yield { line, value: record.value, size };
    else noteSkip(report, record.why, line, record.text);
    if (report.lines % MOST_UNREAD === 0) refuseJunk(report);
  }
}

/** Lines that are no part of any format. */
function unreadIn(report: ImportReport): number {
  const kinds = ['not_json', 'too_large', 'unknown_line', 'unknown_role', 'invalid_event'] as const;
  return kinds.reduce((sum, kind) => sum + skipCount(report, kind), 0);
}

function refuseJunk(report: ImportReport): void {
  const unread = unreadIn(report);
  if (unread < report.lines / 2) return;
  const message = `Of the first ${report.lines} lines of the file ${unread} cannot be read: ${skippedWords(report)}. It is no transcript, or of another format; ${formatList()}.`;
  throw new TroupeError('import_invalid', message, { lines: report.lines });
}

async function chooseFormat(
  records: AsyncGenerator<JsonRecord, void>,
  options: ImportOptions,
  report: ImportReport,
): Promise<{ format: Format; head: JsonRecord[] }> {
  const head: JsonRecord[] = [];
  if (options.format !== undefined && options.format !== 'auto') return { format: options.format, head };
  while (head.length < DETECTION_VALUES && report.lines < DETECTION_LINES) {
    const next = await records.next();
    if (next.done) break;
    head.push(next.value);
    const format = detectFormat(next.value.value);
    if (format !== null) return { format, head };
  }
  if (report.lines === 0) throw emptyFile();
  const why = report.skipped.length === 0 ? '' : `: ${skippedWords(report)}`;
  const message = `The format of the file is not known${why}; ${formatList()}.`;
  throw new TroupeError('import_invalid', message, { lines: report.lines });
}

/** Refuses a file of which nothing came: whoever sent it would believe that it is there. */
function refuseNothing(report: ImportReport, format: Format): void {
  if (report.lines === 0) throw emptyFile();
  const why = skippedWords(report);
  // The export of an empty conversation is whole.
  if (report.events > 0 || (format === 'troupe' && why === '')) return;
  const records = report.lines === 1 ? 'its one record' : `its ${report.lines} records`;
  throw new TroupeError(
    'import_invalid',
    `Nothing of the file came in: read as ${format}, ${records} had no words of a conversation${why === '' ? '' : `: ${why}`}; ${formatList()}.`,
    { format, lines: report.lines },
  );
}

function emptyFile(): TroupeError {
  return new TroupeError('import_invalid', `The file is empty; ${formatList()}.`);
}

async function* chained<T>(head: T[], rest: AsyncIterable<T>): AsyncGenerator<T, void> {
  yield* head;
  yield* rest;
}

function authorsOf({ agent, agentName, user }: ImportOptions): ImportAuthors {
  return {
    agent: { kind: 'agent', id: agent, name: agentName ?? agent },
    user: { kind: 'user', id: user?.id ?? 'user', name: user?.name ?? 'User' },
  };
}

const MAX_NAME = 128;

type NameSource = { conversation?: string | undefined; fileName?: string | undefined };

/**
 * Names the conversations: `<name>` for a single one, `<name>-1`, `<name>-2`, … for several. The first one is held back
 * until a second one comes, unless the format has one conversation per file.
 */
async function* nameConversations(
  entries: AsyncIterable<Entry>,
  source: NameSource,
): AsyncGenerator<NamedEntry, void> {
  const base = source.conversation ?? fileStem(source.fileName ?? '');
  const taken = new Set<string>();
  let held: ContentEntry[] | null = null;
  let count = 0;
  for await (const entry of entries) {
    if (entry.kind !== 'begin') {
      if (held) held.push(entry);
      else yield entry;
      continue;
    }
    count += 1;
    if (count === 1 && !entry.alone) {
      held = [];
      continue;
    }
    if (held) {
      yield { kind: 'begin', conversation: conversationName(base, 1) };
      yield* held;
      held = null;
    }
    const own = source.conversation === undefined ? entry.name : null;
    const plain = conversationName(own ?? base, own !== null || count === 1 ? null : count);
    const conversation = taken.has(plain) ? conversationName(plain, count) : plain;
    taken.add(conversation);
    yield { kind: 'begin', conversation };
  }
  if (!held) return;
  yield { kind: 'begin', conversation: conversationName(base, null) };
  yield* held;
}

/** Turns any text into a conversation id. A valid id stays as it is. */
export function conversationName(text: string, number: number | null): ConversationId {
  const suffix = number === null ? '' : `-${number}`;
  const slug = text
    .replaceAll(/[^A-Za-z0-9._@:-]+/g, '-')
    .replace(/^[^A-Za-z0-9]+/, '')
    .slice(0, MAX_NAME - suffix.length);
  return `${slug === '' ? 'import' : slug}${suffix}` as ConversationId;
}

function fileStem(fileName: string): string {
  const base = fileName.split(/[/\\]/).at(-1) ?? '';
  return base.replace(/(?<=.)\.[A-Za-z0-9]+$/, '');
}
