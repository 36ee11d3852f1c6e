import { TroupeError } from '../../base/errors.ts';
import { type Slices, WHOLE } from '../../base/slices.ts';
import { isThreadOf, partsOfThread, threadId } from '../../base/thread-id.ts';
import { AgentId, type ConversationId, parseGiven } from '../../events/index.ts';
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
import { type ImportReport, newImportReport, noteSkip, skipCount, skippedWords } from './report.ts';
import { isExport, readTroupe } from './troupe-format.ts';
import { TextDecoder } from 'node:util';

export type ImportOptions = {
  /** Default `auto`: detected. */
  format?: string | undefined;
  /** The agent that speaks for the transcript's assistant. */
  agent: AgentId;
  agentName?: string | undefined;
  user?: { id: string; name: string } | undefined;
  conversation?: string | undefined;
  fileName?: string | undefined;
  /** Slices of the work. Default: none, for scripts, which run alone. */
  slices?: Slices | undefined;
};

/** The format of our own exports, which needs no package. */
const OWN = 'troupe';

type Reader = (records: AsyncIterable<TranscriptRecord>, report: ImportReport) => AsyncGenerator<Entry, void>;
type Entry = TranscriptEntry | DraftEntry;
type BeginEntry = Extract<Entry, { kind: 'begin' }>;
type NamedEntry = { kind: 'begin'; conversation: ConversationId } | ContentEntry;
type Chosen = { format: string; read: Reader; head: TranscriptRecord[] };

/** Number of values that are checked before the format counts as unknown, and number of lines that are read for them. */
const DETECTION_VALUES = 64;
const DETECTION_LINES = 1_000;
/** Number of unreadable lines from which a file, if they are most of its lines, counts as no transcript. */
const MOST_UNREAD = 10_000;

/**
 * Reads a transcript as drafts, one at a time. Memory holds one record; in formats with several conversations per file,
 * the first one; and the text of a session that is a tree (`branches.ts` of the importers). The report fills with the
 * drafts and is complete when the generator ends.
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

/** Adds an item to the counts of the report; with -1, subtracts it. */
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

/** Number of lines that belong to no format. */
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

/** Refuses a file from which nothing was imported: its sender would otherwise believe that the import succeeded. */
function refuseNothing(report: ImportReport, format: string, importers: ImportersPackage | null): void {
  if (report.lines === 0) throw emptyFile(importers);
  const why = skippedWords(report);
  // The export of an empty conversation has no events and is valid.
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
  // Names for the first conversation of an export that is imported under another name, and for its threads.
  let names: RootNames | null = null;
  for await (const entry of entries) {
    if (entry.kind !== 'begin') {
      if (held) held.push(entry);
      else yield renamedEntry(entry, names);
      continue;
    }
    count += 1;
    if (count === 1) names = namesOf(entry, source);
    if (count === 1 && !entry.alone) {
      held = [];
      continue;
    }
    if (held) {
      yield { kind: 'begin', conversation: conversationName(base, 1) };
      yield* held;
      held = null;
    }
    const own = ownName(entry, source, names);
    const plain = conversationName(own ?? base, own !== null || count === 1 ? null : count);
    const conversation = taken.has(plain) ? conversationName(plain, count) : plain;
    taken.add(conversation);
    yield { kind: 'begin', conversation };
  }
  if (!held) return;
  yield { kind: 'begin', conversation: conversationName(base, null) };
  yield* held;
}

/** The name that a conversation keeps or, as a thread, shares with the first one. Null: it has none. */
function ownName({ name }: BeginEntry, { conversation }: NameSource, names: RootNames | null): string | null {
  return conversation === undefined ? name : threadNamed(name, names);
}

/** An exported conversation, and its name here. */
interface RootNames {
  from: string;
  to: ConversationId;
}

function namesOf({ name, alone }: BeginEntry, { conversation }: NameSource): RootNames | null {
  if (!alone || name === null || conversation === undefined) return null;
  return { from: name, to: conversationName(conversation, null) };
}

/** The name here of a thread of the conversation; null if it is not a thread of it. */
function threadNamed(name: string | null, names: RootNames | null): ConversationId | null {
  const task = partsOfThread(name ?? '')?.task;
  if (name === null || task === undefined || !names || !isThreadOf(name, names.from)) return null;
  return threadId(names.to, task) as ConversationId;
}

/** Redirects the tasks of an imported export to its own threads, so that they never lead to those of the original. */
function renamedEntry(entry: ContentEntry, names: RootNames | null): ContentEntry {
  if (!names || entry.kind !== 'draft' || entry.draft.kind !== 'delegation.opened') return entry;
  const { draft } = entry;
  const named = (name: ConversationId) =>
    name === names.from ? names.to : (threadNamed(name, names) ?? name);
  const { home, thread } = draft.body;
  const body = { ...draft.body, root: names.to, home: named(home), thread: named(thread) };
  return { ...entry, draft: { ...draft, body } };
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

/** What is imported, and where to. */
export interface ImportRequest {
  /** Default: detected. */
  format?: string | undefined;
  /** Id of the agent that becomes the author of assistant messages. Default `assistant`. */
  agent?: string | undefined;
  /** Id of the conversation, or prefix of the ids if the file holds several. */
  conversation?: string | undefined;
  /** Name of the file, for messages of errors. */
  fileName?: string | undefined;
}

export interface ImportLimits {
  /** Decides whether an imported file may write to a conversation and name it in tasks. Default: always. */
  mayLeadTo?: ((conversation: string) => boolean) | undefined;
  /** Whether the caller may read every conversation of the tenant. Default: true. */
  readsAll?: boolean | undefined;
}

/** The options of a reader from a request, with the defaults. Throws `import_invalid`. */
export function readImportRequest({
  format,
  agent: author = 'assistant',
  conversation,
  fileName,
}: ImportRequest): ImportOptions {
  return {
    ...(format !== undefined && { format }),
    agent: parseGiven(AgentId, author, 'agent', 'import_invalid'),
    ...(conversation !== undefined && { conversation }),
    ...(fileName !== undefined && { fileName }),
  };
}

/** A JSON value, or a piece of text that is not JSON, with the line where it starts. */
type SourceRecord =
  | { line: number; json: true; value: unknown; size: number }
  | { line: number; json: false; why: 'not_json' | 'too_large'; text: string; size: number };

/** In characters. A longer record is left out, so that one file cannot exhaust memory. */
const MAX_RECORD = 16 * 1024 * 1024;
/** Most JSON values in one record: the smallest take a hundred times their text in memory. */
const MAX_VALUES = 1_000_000;
/** Work between two slices: records, and characters. */
const SLICE_RECORDS = 256;
const SLICE_CHARS = 64 * 1024;

/** Splits a file into records. The work between two calls of `slices` is limited for any content of the file. */
async function* readRecords(
  chunks: AsyncIterable<string | Uint8Array>,
  slices: Slices = WHOLE,
): AsyncGenerator<SourceRecord, void> {
  const splitter = new RecordSplitter();
  let records = 0;
  let chars = 0;
  for await (const text of pieces(chunks)) {
    for (const record of text === null ? splitter.end() : splitter.push(text)) {
      yield record;
      if ((records += 1) < SLICE_RECORDS) continue;
      records = 0;
      await slices.next();
    }
    if ((chars += text?.length ?? 0) < SLICE_CHARS) continue;
    chars = 0;
    await slices.next();
  }
}

/** The text in pieces of at most `SLICE_CHARS`, without padding; null at the end. */
async function* pieces(chunks: AsyncIterable<string | Uint8Array>): AsyncGenerator<string | null, void> {
  const decode = createDecoder();
  for await (const chunk of chunks) {
    const text = typeof chunk === 'string' ? chunk : decode(chunk);
    for (let at = 0; at < text.length; at += SLICE_CHARS) yield unpadded(text.slice(at, at + SLICE_CHARS));
  }
  yield unpadded(decode(null));
  yield null;
}

/** Decodes UTF-8, or UTF-16 if the file begins with its mark, as PowerShell writes it. `null` ends the text. */
function createDecoder(): (chunk: Uint8Array | null) => string {
  let decoder: TextDecoder | null = null;
  let head = Buffer.alloc(0);
  return (chunk) => {
    if (decoder) return decoder.decode(chunk ?? undefined, { stream: chunk !== null });
    head = chunk ? Buffer.concat([head, chunk]) : head;
    if (chunk && head.length < 2) return '';
    decoder = new TextDecoder(encodingOf(head));
    return decoder.decode(head, { stream: chunk !== null });
  };
}

function encodingOf([first, second]: Uint8Array): string {
  if (first === 0xff && second === 0xfe) return 'utf-16le';
  return first === 0xfe && second === 0xff ? 'utf-16be' : 'utf-8';
}

/** Removes NUL characters, which JSON never has: file systems pad a file with them when the machine loses power. */
function unpadded(text: string): string {
  return text.includes('\0') ? text.replaceAll('\0', '') : text;
}

/**
 * Splits a stream of text into JSON values. The first character determines the layout:
 *   `[`   the elements of the array, one by one, then lines;
 *   `{`   one balanced value, perhaps over many lines, then lines (for JSONL that value is its first line);
 *   else  lines.
 * Owns only the unfinished record.
 * 1. A first value that exceeds MAX_RECORD or is not JSON is read again as lines, so that only the broken first line is
 *    lost. From then on every newline ends a record.
 * 2. Text is kept as parts and joined once: joining at each chunk would take quadratic time for a long line.
 * 3. A record over MAX_RECORD is skipped to its end; the records after it are read.
 */
class RecordSplitter {
  #mode: 'start' | 'value' | 'array' | 'lines' = 'start';
  #parts: string[] = [];
  #size = 0;
  #line = 1;
  #depth = 0;
  #inString = false;
  #escaped = false;
  #emitted = 0;
  /** The present record is too large, and its end is searched. */
  #isPassing = false;

  *push(chunk: string): Generator<SourceRecord, void> {
    let rest = chunk;
    while (rest !== '') {
      if (this.#mode === 'start') rest = this.#begin(rest);
      else if (this.#mode === 'lines') rest = yield* this.#takeLine(rest);
      else rest = yield* this.#takeValue(rest);
    }
  }

  *end(): Generator<SourceRecord, void> {
    if (this.#mode === 'value' || this.#mode === 'array') yield* this.push(yield* this.#finish(''));
    yield* this.#emitLine();
  }

  #begin(text: string): string {
    const rest = this.#skip(text, /^[\s\uFEFF]*/);
    if (rest === '') return '';
    this.#mode = rest.startsWith('[') ? 'array' : rest.startsWith('{') ? 'value' : 'lines';
    return this.#mode === 'array' ? rest.slice(1) : rest;
  }

  *#takeLine(given: string): Generator<SourceRecord, string> {
    const text = this.#size === 0 && !this.#isPassing ? this.#skip(given, /^\s*/) : given;
    if (text === '') return '';
    const end = text.indexOf('\n');
    const piece = end === -1 ? text : text.slice(0, end);
    if (this.#isPassing || this.#size + piece.length > MAX_RECORD) yield* this.#pass(piece);
    else this.#keep(piece);
    if (end === -1) return '';
    yield* this.#emitLine();
    this.#isPassing = false;
    this.#line += 1;
    return text.slice(end + 1);
  }

  /** Reports a record that is too large, once, and drops its text. */
  *#pass(piece: string): Generator<SourceRecord, void> {
    if (this.#isPassing) return;
    const text = (this.#take() + piece).slice(0, EXCERPT);
    this.#isPassing = true;
    this.#emitted += 1;
    yield { line: this.#line, json: false, why: 'too_large', text, size: EXCERPT };
  }

  *#emitLine(): Generator<SourceRecord, void> {
    const text = this.#take();
    if (text.trim() === '') return;
    this.#emitted += 1;
    yield* parseLine(this.#line, text);
  }

  *#takeValue(text: string): Generator<SourceRecord, string> {
    let rest = text;
    if (this.#mode === 'array' && this.#size === 0) {
      rest = this.#skip(rest, /^[\s,]*/);
      if (rest === '') return '';
      if (rest.startsWith(']')) {
        this.#mode = 'lines';
        return rest.slice(1);
      }
    }
    const end = this.#scan(rest);
    const piece = end === -1 ? rest : rest.slice(0, end);
    if (this.#isPassing || this.#size + piece.length > MAX_RECORD) {
      const isOneLine =
        this.#mode === 'array' && this.#emitted > 0 && !this.#parts.some((part) => part.includes('\n'));
      if (!this.#isPassing && !isOneLine) return this.#asLines(this.#take() + rest);
      yield* this.#pass(piece);
    } else this.#keep(piece);
    return end === -1 ? '' : yield* this.#finish(rest.slice(end));
  }

  /** Emits the value, which is complete or cut off by the end of the text. Returns the text still to be read. */
  *#finish(rest: string): Generator<SourceRecord, string> {
    const text = this.#take();
    this.#depth = 0;
    this.#inString = false;
    this.#escaped = false;
    this.#isPassing = false;
    if (text.trim() === '') return rest;
    const record = parseRecord(this.#line, text);
    if (!record.json && this.#emitted === 0) return this.#asLines(text + rest);
    this.#emitted += 1;
    this.#line += newlines(text);
    if (this.#mode === 'value') this.#mode = 'lines';
    yield record;
    return rest;
  }

  #asLines(text: string): string {
    this.#mode = 'lines';
    return text;
  }

  /** The index where the value ends, or -1. State is kept between chunks. */
  #scan(text: string): number {
    for (let i = 0; i < text.length; i += 1) {
      const char = text[i];
      if (this.#inString) this.#scanString(char);
      else if (char === '"') this.#inString = true;
      else if (char === '{' || char === '[') this.#depth += 1;
      else if (this.#depth === 0) {
        if (this.#mode === 'array' && (char === ',' || char === ']')) return i;
      } else if (char === '}' || char === ']') {
        this.#depth -= 1;
        if (this.#depth === 0 && this.#mode === 'value') return i + 1;
      }
    }
    return -1;
  }

  #scanString(char: string | undefined): void {
    if (this.#escaped) this.#escaped = false;
    else if (char === '\\') this.#escaped = true;
    else if (char === '"') this.#inString = false;
  }

  #skip(text: string, blank: RegExp): string {
    const skipped = blank.exec(text)?.[0] ?? '';
    this.#line += newlines(skipped);
    return text.slice(skipped.length);
  }

  #keep(piece: string): void {
    this.#parts.push(piece);
    this.#size += piece.length;
  }

  #take(): string {
    const text = this.#parts.join('');
    this.#parts = [];
    this.#size = 0;
    return text;
  }
}

/** Length of the excerpt of a record that was left out. */
const EXCERPT = 80;

/** The values of a line: one, or several written one after the other without a newline. */
function* parseLine(line: number, text: string): Generator<SourceRecord, void> {
  const record = parseRecord(line, text);
  if (record.json || record.why !== 'not_json' || !/\}\s*\{/.test(text)) return yield record;
  for (let at = 0; at < text.length;) {
    const end = endOfObject(text, at);
    const next = parseRecord(line, text.slice(at, end));
    // In text that is not JSON, searching further would start again at each brace.
    if (!next.json) return yield { ...next, text: text.slice(at, at + EXCERPT) };
    yield next;
    at = text.length - text.slice(end).trimStart().length;
  }
}

/** Index after the object that begins here; the length of the text if it does not end. */
function endOfObject(text: string, from: number): number {
  let depth = 0;
  for (let i = from; i < text.length; i += 1) {
    const char = text[i];
    if (char === '"') i = endOfText(text, i);
    else if (char === '{') depth += 1;
    else if (char === '}' && (depth -= 1) <= 0) return i + 1;
  }
  return text.length;
}

function parseRecord(line: number, text: string): SourceRecord {
  const size = text.length;
  const without = (why: 'not_json' | 'too_large'): SourceRecord => {
    return { line, json: false, why, text: text.slice(0, EXCERPT), size };
  };
  if (!mayBeJson(text)) return without('not_json');
  if (size > MAX_VALUES / 4 && hasTooManyValues(text)) return without('too_large');
  try {
    return { line, json: true, value: JSON.parse(text), size };
  } catch {
    // Expected: the report counts records that are not JSON.
    return without('not_json');
  }
}

/** Checks the first and last character. Parsing text that is not JSON would create an error with a stack. */
function mayBeJson(text: string): boolean {
  const trimmed = text.trim();
  const last = trimmed.at(-1) ?? '';
  switch (trimmed.charAt(0)) {
    case '{':
      return last === '}';
    case '[':
      return last === ']';
    case '"':
      return last === '"' && trimmed.length > 1;
    default:
      return trimmed.length < 32 && /^(?:-?\d[\d.eE+-]*|true|false|null)$/.test(trimmed);
  }
}

/** Counts the characters that separate and open values, outside of strings. */
function hasTooManyValues(text: string): boolean {
  let values = 0;
  for (let i = 0; i < text.length; i += 1) {
    const char = text[i];
    if (char === '"') i = endOfText(text, i);
    else if (char === ',' || char === '[' || char === '{') values += 1;
  }
  return values > MAX_VALUES;
}

/** Index of the quote that ends the string whose first quote is at `from`. */
function endOfText(text: string, from: number): number {
  for (let i = from + 1; i < text.length; i += 1) {
    if (text[i] === '"') return i;
    if (text[i] === '\\') i += 1;
  }
  return text.length;
}

function newlines(text: string): number {
  let count = 0;
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) count += 1;
  return count;
}
