import { TroupeError } from '../errors.ts';
import type { AgentId, ConversationId } from '../events/index.ts';
import { DraftWriter, type ImportAuthors, type ImportItem } from './draft-writer.ts';
import type { ContentEntry, Entry, FormatReader, JsonRecord, NamedEntry } from './entry.ts';
import {
  detectFormat,
  excerpt,
  type Format,
  formatList,
  type ImportReport,
  newImportReport,
  noteSkip,
  skipCount,
} from './report.ts';
import { readClaudeCode } from './read-claude-code.ts';
import { readPi } from './read-pi.ts';
import { readDialogue, readLocomo } from './read-dialogue.ts';
import { readOpenAi } from './read-openai.ts';
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
};

const READERS: Record<Format, FormatReader> = {
  troupe: readTroupe,
  pi: readPi,
  'claude-code': readClaudeCode,
  openai: readOpenAi,
  dialogue: readDialogue,
  locomo: readLocomo,
};

/** Number of records that are checked before the format counts as unknown. */
const DETECTION_RECORDS = 64;

/**
 * Reads a transcript as drafts, one at a time. Memory holds one record, or the first conversation in formats with several
 * per file. The report fills with the drafts and is complete when the generator ends.
 */
export async function* importTranscript(
  chunks: AsyncIterable<string | Uint8Array>,
  options: ImportOptions,
  report: ImportReport = newImportReport(),
): AsyncGenerator<ImportItem, ImportReport> {
  const records = jsonRecords(chunks, report);
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
    refuseNonsense(report, format);
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
  report: ImportReport,
): AsyncGenerator<JsonRecord, void> {
  for await (const record of readRecords(chunks)) {
    report.lines += 1;
    if (record.json) yield { line: record.line, value: record.value };
    else noteSkip(report, 'not_json', record.line, excerpt(record.text));
  }
}

async function chooseFormat(
  records: AsyncGenerator<JsonRecord, void>,
  options: ImportOptions,
  report: ImportReport,
): Promise<{ format: Format; head: JsonRecord[] }> {
  const head: JsonRecord[] = [];
  if (options.format !== undefined && options.format !== 'auto') return { format: options.format, head };
  while (head.length < DETECTION_RECORDS) {
    const next = await records.next();
    if (next.done) break;
    head.push(next.value);
    const format = detectFormat(next.value.value);
    if (format !== null) return { format, head };
  }
  if (report.lines === 0) throw emptyFile();
  throw new TroupeError('import_invalid', `The format of the file is not known; ${formatList()}.`, {
    lines: report.lines,
  });
}

/** Refuses a file without a readable line: it is the wrong file or format, not an empty conversation. */
function refuseNonsense(report: ImportReport, format: Format): void {
  if (report.lines === 0) throw emptyFile();
  const unread =
    skipCount(report, 'not_json') + skipCount(report, 'unknown_line') + skipCount(report, 'invalid_event');
  if (report.events > 0 || unread < report.lines) return;
  throw new TroupeError(
    'import_invalid',
    `No line of the file is in the format ${format}; ${formatList()}.`,
    {
      format,
      lines: report.lines,
    },
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
