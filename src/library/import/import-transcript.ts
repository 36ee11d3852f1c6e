import { TroupeError } from '../../base/errors.ts';
import type { Slices } from '../../base/slices.ts';
import type { AgentId, ConversationId } from '../../events/index.ts';
import {
  type ContentEntry,
  type DraftEntry,
  DraftWriter,
  type ImportAuthors,
  type ImportItem,
} from './draft-writer.ts';
import {
  findImporters,
  type ImportersPackage,
  importersMissing,
  type TranscriptEntry,
  type TranscriptRecord,
} from './importers.ts';
import { readRecords } from './record.ts';
import { type ImportReport, newImportReport, noteSkip, skipCount, skippedWords } from './report.ts';
import { isExport, readTroupe } from './troupe-format.ts';

export type ImportOptions = {
  /** Default `auto`: detected. */
  format?: string | undefined;
  /** The agent that speaks for the transcript's assistant. */
  agent: AgentId;
  agentName?: string | undefined;
  user?: { id: string; name: string } | undefined;
  conversation?: string | undefined;
  fileName?: string | undefined;
  /** The work's slices. Default: none, for scripts, which run alone. */
  slices?: Slices | undefined;
};

/** The format of our own exports, which needs no package. */
const OWN = 'troupe';

type Reader = (records: AsyncIterable<TranscriptRecord>, report: ImportReport) => AsyncGenerator<Entry, void>;
type Entry = TranscriptEntry | DraftEntry;
type NamedEntry = { kind: 'begin'; conversation: ConversationId } | ContentEntry;
type Chosen = { format: string; read: Reader; head: TranscriptRecord[] };

/** Values that are checked before the format counts as unknown, and lines that are read for them. */
const DETECTION_VALUES = 64;
const DETECTION_LINES = 1_000;
/** A file of which so many lines, and most, cannot be read is no transcript. */
const MOST_UNREAD = 10_000;

/**
 * Reads a transcript as drafts, one at a time. Memory holds one record; the first conversation in formats with several per
 * file; the words of a session that is a tree (`branches.ts` of the importers). The report fills with the drafts and is complete when the generator ends.
 */
export async function* importTranscript(
  chunks: AsyncIterable<string | Uint8Array>,
  options: ImportOptions,
  report: ImportReport = newImportReport(),
): AsyncGenerator<ImportItem, ImportReport> {
  const importers = await findImporters();
  const records = jsonRecords(chunks, options, report, importers);
  try {
    const { format, read, head } = await chooseFormat(records, options, report, importers);
    report.format = format;
    const entries = read(chained(head, records), report);
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
    refuseNothing(report, format, importers);
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
  importers: ImportersPackage | null,
): AsyncGenerator<TranscriptRecord, void> {
  for await (const record of readRecords(chunks, slices)) {
    report.lines += 1;
    const { line, size } = record;
    if (record.json) yield { line, value: record.value, size };
    else noteSkip(report, record.why, line, record.text);
    if (report.lines % MOST_UNREAD === 0) refuseJunk(report, importers);
  }
}

/** Lines that are no part of any format. */
function unreadIn(report: ImportReport): number {
  const kinds = ['not_json', 'too_large', 'unknown_line', 'unknown_role', 'invalid_event'] as const;
  return kinds.reduce((sum, kind) => sum + skipCount(report, kind), 0);
}

function refuseJunk(report: ImportReport, importers: ImportersPackage | null): void {
  const unread = unreadIn(report);
  if (unread < report.lines / 2) return;
  const message = `Of the first ${report.lines} lines of the file ${unread} cannot be read: ${skippedWords(report)}. It is no transcript, or of another format; ${formatList(importers)}.`;
  throw new TroupeError('import_invalid', message, { lines: report.lines });
}

async function chooseFormat(
  records: AsyncGenerator<TranscriptRecord, void>,
  { format = 'auto' }: ImportOptions,
  report: ImportReport,
  importers: ImportersPackage | null,
): Promise<Chosen> {
  const head: TranscriptRecord[] = [];
  if (format !== 'auto') return { format, read: readerOf(format, importers), head };
  while (head.length < DETECTION_VALUES && report.lines < DETECTION_LINES) {
    const next = await records.next();
    if (next.done) break;
    head.push(next.value);
    const { value } = next.value;
    const found = isExport(value) ? OWN : (importers?.detectFormat(value) ?? null);
    if (found !== null) return { format: found, read: readerOf(found, importers), head };
  }
  if (report.lines === 0) throw emptyFile(importers);
  if (!importers && head.length > 0) throw importersMissing();
  const why = report.skipped.length === 0 ? '' : `: ${skippedWords(report)}`;
  const message = `The format of the file is not known${why}; ${formatList(importers)}.`;
  throw new TroupeError('import_invalid', message, { lines: report.lines });
}

function readerOf(format: string, importers: ImportersPackage | null): Reader {
  if (format === OWN) return readTroupe;
  if (!importers) throw importersMissing();
  const read = importers.formats.get(format);
  if (read) return read;
  const message = `there is no format "${format}"; known: ${formatNames(importers)}`;
  throw new TroupeError('import_invalid', message, { format });
}

/** Refuses a file of which nothing came: whoever sent it would believe that it is there. */
function refuseNothing(report: ImportReport, format: string, importers: ImportersPackage | null): void {
  if (report.lines === 0) throw emptyFile(importers);
  const why = skippedWords(report);
  // The export of an empty conversation is whole.
  if (report.events > 0 || (format === OWN && why === '')) return;
  const records = report.lines === 1 ? 'its one record' : `its ${report.lines} records`;
  throw new TroupeError(
    'import_invalid',
    `Nothing of the file came in: read as ${format}, ${records} had no words of a conversation${why === '' ? '' : `: ${why}`}; ${formatList(importers)}.`,
    { format, lines: report.lines },
  );
}

function emptyFile(importers: ImportersPackage | null): TroupeError {
  return new TroupeError('import_invalid', `The file is empty; ${formatList(importers)}.`);
}

/** The formats in one line, for error messages. */
function formatList(importers: ImportersPackage | null): string {
  const names = `supported formats: ${formatNames(importers)}`;
  return importers ? names : `${names}; for those of other programs: npm install @troupe/importers`;
}

function formatNames(importers: ImportersPackage | null): string {
  return [OWN, ...(importers?.formats.keys() ?? [])].join(', ');
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
