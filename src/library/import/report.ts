import type { ConversationId, EventKind } from '../../events/index.ts';

/** A change without which the content could not be imported. */
type RepairKind =
  | 'call_arguments'
  | 'call_without_id'
  | 'call_id_too_long'
  | 'call_name'
  | 'duplicate_call'
  | 'inferred_call'
  | 'missing_result'
  | 'orphan_result'
  | 'placeholder'
  | 'plain_text_part'
  | 'reasoning_dropped';

/** Why a part of the file is not in the conversation. */
type SkipKind =
  | 'not_json'
  /** A record of more than 16 MiB, or with more than a million values. */
  | 'too_large'
  /** Text on a branch that was abandoned: a prompt that was edited, or an answer that was generated again. */
  | 'other_branch'
  /** Typed while an agent worked, and withdrawn. */
  | 'taken_back'
  /** The same call, result or text again. */
  | 'told_twice'
  | 'unknown_line'
  | 'unknown_role'
  | 'empty_message'
  | 'result_without_id'
  | 'sidechain'
  | 'duplicate_line'
  | 'invalid_event'
  /** A field of an event in an export of another version. */
  | 'unknown_field'
  /** A summary that covers nothing, or covers events that are not in this file. */
  | 'summary'
  | 'metadata';

export type ImportNote<K extends string = string> = { kind: K; count: number; examples: string[] };

/** Fills during the import and is complete when the generator of the import ends. */
export type ImportReport = {
  /** Null until it is known. */
  format: string | null;
  conversations: ConversationId[];
  /** Number of records read: lines of JSONL without blank ones, or elements of a JSON array. */
  lines: number;
  events: number;
  /** Number of events by kind. */
  kinds: Partial<Record<EventKind, number>>;
  repaired: ImportNote<RepairKind>[];
  skipped: ImportNote<SkipKind>[];
};

/** Where a reader notes what it changes or leaves out: with `noteRepair` and `noteSkip`. */
export type ImportNotes = Pick<ImportReport, 'repaired' | 'skipped'>;

const MAX_EXAMPLES = 5;
const MAX_EXAMPLE_CHARS = 120;

export function newImportReport(): ImportReport {
  return { format: null, conversations: [], lines: 0, events: 0, kinds: {}, repaired: [], skipped: [] };
}

/** Notes a change without which the content could not be imported. */
export function noteRepair(notes: ImportNotes, kind: RepairKind, line: number, detail: unknown): void {
  addNote(notes.repaired, kind, line, detail);
}

/** Notes a part of the file that is not imported. */
export function noteSkip(notes: ImportNotes, kind: SkipKind, line: number, detail: unknown): void {
  addNote(notes.skipped, kind, line, detail);
}

/** Adds the notes of a part of the file. */
export function addNotes(report: ImportNotes, { repaired, skipped }: ImportNotes): void {
  for (const note of repaired) join(report.repaired, note);
  for (const note of skipped) join(report.skipped, note);
}

function join<K extends string>(notes: ImportNote<K>[], { kind, count, examples }: ImportNote<K>): void {
  const note = noteOf(notes, kind);
  note.count += count;
  note.examples.push(...examples.slice(0, Math.max(0, MAX_EXAMPLES - note.examples.length)));
}

export function skipCount(report: ImportReport, kind: SkipKind): number {
  return report.skipped.find((note) => note.kind === kind)?.count ?? 0;
}

/** The detail is only shortened if it becomes an example: most lines of a damaged file do not. */
function addNote<K extends string>(notes: ImportNote<K>[], kind: K, line: number, detail: unknown): void {
  const note = noteOf(notes, kind);
  note.count += 1;
  if (note.examples.length < MAX_EXAMPLES) {
    note.examples.push(`line ${line}: ${excerpt(detail)}`.slice(0, MAX_EXAMPLE_CHARS));
  }
}

function noteOf<K extends string>(notes: ImportNote<K>[], kind: K): ImportNote<K> {
  let note = notes.find((known) => known.kind === kind);
  if (!note) notes.push((note = { kind, count: 0, examples: [] }));
  return note;
}

/** What was left out, for an error message: `3 not json (line 1: …), 1 sidechain (line 9: …)`. */
export function skippedWords({ skipped }: ImportNotes): string {
  const most = skipped.toSorted((a, b) => b.count - a.count);
  const words = most.map(
    ({ kind, count, examples }) => `${count} ${kind.replaceAll('_', ' ')} (${examples[0] ?? ''})`,
  );
  return words.join(', ');
}

/** A foreign value, short enough for an example. */
export function excerpt(value: unknown): string {
  return (typeof value === 'string' ? value : jsonText(value)).slice(0, 80);
}

/** A JSON object with unknown, untrusted fields. */
export type JsonObject = Record<string, unknown>;

/** Whether a parsed value is an object with fields: not null, and no list. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A text that is not blank; null for any other value. */
export function textOf(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null;
}

/** A text, or '' for any other value, whose conversion to text may throw. */
export function nameOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** A parsed value as JSON text. `JSON.parse` is iterative and `stringify` recursive, so deep nesting overflows only here. */
export function jsonText(value: unknown): string {
  try {
    return JSON.stringify(value) ?? 'undefined';
  } catch (thrown) {
    if (thrown instanceof RangeError) return '"[nested too deeply]"';
    throw thrown;
  }
}

/** Smaller numbers are seconds. As milliseconds, this number is the year 1973; as seconds, the year 5138. */
const SECONDS_BELOW = 100_000_000_000;

/** Ms since the epoch from a number or an ISO text; null if an event cannot have this time. */
export function timeOf(value: unknown): number | null {
  if (typeof value === 'string') return validTime(Date.parse(value));
  if (typeof value !== 'number') return null;
  return validTime(value < SECONDS_BELOW ? value * 1000 : value);
}

/** Whole ms since the epoch; null if an event cannot have this time. */
export function validTime(ms: number): number | null {
  const whole = Math.trunc(ms);
  return Number.isSafeInteger(whole) && whole >= 0 ? whole : null;
}
