import type { ConversationId, EventKind } from '../events/index.ts';
import { isObject, jsonText, messagesOf, sessionsOf } from './shape.ts';

/** A change without which the content could not be kept. */
export type RepairKind =
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
export type SkipKind =
  | 'not_json'
  | 'unknown_line'
  | 'unknown_role'
  | 'empty_message'
  | 'result_without_id'
  | 'sidechain'
  | 'duplicate_line'
  | 'invalid_event'
  /** A summary that covers nothing, or events that are not of this file. */
  | 'summary'
  | 'metadata';

export type ImportNote<K extends string = string> = { kind: K; count: number; examples: string[] };

/** Fills during the import and is complete when the generator of the import ends. */
export type ImportReport = {
  format: Format | null;
  conversations: ConversationId[];
  /** Number of records read: lines of JSONL without blank ones, or elements of a JSON array. */
  lines: number;
  events: number;
  /** Number of events by kind. */
  kinds: Partial<Record<EventKind, number>>;
  repaired: ImportNote<RepairKind>[];
  skipped: ImportNote<SkipKind>[];
};

const MAX_EXAMPLES = 5;
const MAX_EXAMPLE_CHARS = 120;

export function newImportReport(): ImportReport {
  return { format: null, conversations: [], lines: 0, events: 0, kinds: {}, repaired: [], skipped: [] };
}

export function noteRepair(report: ImportReport, kind: RepairKind, line: number, detail: string): void {
  addNote(report.repaired, kind, line, detail);
}

export function noteSkip(report: ImportReport, kind: SkipKind, line: number, detail: string): void {
  addNote(report.skipped, kind, line, detail);
}

export function skipCount(report: ImportReport, kind: SkipKind): number {
  return report.skipped.find((note) => note.kind === kind)?.count ?? 0;
}

function addNote<K extends string>(notes: ImportNote<K>[], kind: K, line: number, detail: string): void {
  let note = notes.find((known) => known.kind === kind);
  if (!note) notes.push((note = { kind, count: 0, examples: [] }));
  note.count += 1;
  if (note.examples.length < MAX_EXAMPLES) {
    note.examples.push(`line ${line}: ${detail}`.slice(0, MAX_EXAMPLE_CHARS));
  }
}

/** A foreign value, short enough for an example. */
export function excerpt(value: unknown): string {
  return (typeof value === 'string' ? value : jsonText(value)).slice(0, 80);
}

export const FORMATS = ['troupe', 'pi', 'claude-code', 'openai', 'dialogue', 'locomo'] as const;
export type Format = (typeof FORMATS)[number];

const PI_TYPES = new Set([
  'session',
  'model_change',
  'thinking_level_change',
  'compaction',
  'branch_summary',
]);
const CLAUDE_KEYS = ['uuid', 'parentUuid', 'leafUuid', 'isSidechain', 'sessionId'];

/** The format whose reader understands this value. Null if none does; a later value of the file may still be known. */
export function detectFormat(value: unknown): Format | null {
  if (Array.isArray(value)) return messagesOf(value) === null ? null : 'openai';
  if (!isObject(value)) return null;
  if (typeof value['troupe'] === 'number') return 'troupe';
  if (typeof value['messages_display'] === 'string') return 'dialogue';
  if (sessionsOf(value).length > 0) return 'locomo';
  if (typeof value['type'] === 'string') {
    if (CLAUDE_KEYS.some((key) => key in value)) return 'claude-code';
    if (PI_TYPES.has(value['type'])) return 'pi';
    if (value['type'] === 'message' && isObject(value['message'])) return 'pi';
  }
  return messagesOf(value) !== null || typeof value['role'] === 'string' ? 'openai' : null;
}

/** The formats in one line, for error messages. */
export function formatList(): string {
  return `supported formats: ${FORMATS.join(', ')}`;
}
