import type { Author, ConversationId, EventDraft, Reasoning } from '../events/index.ts';
import type { ImportReport } from './report.ts';

/** What a format reader gives out: the neutral transcript between foreign lines and drafts. */
export type ForeignCall = { id: string | null; name: string | null; args: unknown; partial: boolean };
export type ForeignResult = { call: string | null; name: string | null; text: string; failed: boolean };

type Position = { line: number; at: number | null };

export type SaidEntry = Position & { kind: 'said'; author: 'user' | 'system' | Author; text: string };
export type AssistantEntry = Position & {
  kind: 'assistant';
  text: string;
  calls: ForeignCall[];
  reasoning: Reasoning | null;
  /** Set where the turn did not end well. */
  ended: { how: 'aborted' | 'failed'; message: string } | null;
};
export type ResultEntry = Position & { kind: 'result' } & ForeignResult;
/** Our own format: nothing to translate. */
export type DraftEntry = Position & { kind: 'draft'; draft: EventDraft };
export type ContentEntry = SaidEntry | AssistantEntry | ResultEntry | DraftEntry;

/** `alone`: the file is one conversation, so its name needs no number and nothing must be held back to find out. */
export type BeginEntry = { kind: 'begin'; name: string | null; alone: boolean };
export type Entry = BeginEntry | ContentEntry;
export type NamedEntry = { kind: 'begin'; conversation: ConversationId } | ContentEntry;

export type JsonRecord = { line: number; value: unknown };
/** The first entry is a `begin`. Never throws for bad content: notes it in the report and goes on. */
export type FormatReader = (
  records: AsyncIterable<JsonRecord>,
  report: ImportReport,
) => AsyncGenerator<Entry, void>;
