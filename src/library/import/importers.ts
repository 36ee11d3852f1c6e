import { TroupeError } from '../../base/errors.ts';
import { isMissing } from '../../base/optional-packages.ts';
import type { Author, Reasoning } from '../../events/index.ts';
import type { ImportNotes } from './report.ts';

const NAME = '@troupe/importers';

/** The interface of `@troupe/importers` that the core uses. The package is separate and optional. */
export interface ImportersPackage {
  /** The reader of each format, by the name that people give. */
  formats: ReadonlyMap<string, TranscriptReader>;
  /** The format whose reader understands this value of a file. Null: none does, but a later value may still identify one. */
  detectFormat(value: unknown): string | null;
}

/**
 * Reads the records of a file as entries; the first entry is a `begin`. Bad content is noted, never thrown; throws
 * `import_invalid` for a file that it cannot hold in memory.
 */
export type TranscriptReader = (
  records: AsyncIterable<TranscriptRecord>,
  notes: ImportNotes,
) => AsyncGenerator<TranscriptEntry, void>;

/** A JSON value of the file: a line, or an element of its array. */
export interface TranscriptRecord {
  /** The line on which it starts, from 1. */
  line: number;
  /** The parsed value. */
  value: unknown;
  /** Its characters. */
  size: number;
}

/** The content of a transcript, independent of its format. Ids, places and authors in the log are assigned later. */
export type TranscriptEntry = BeginEntry | SaidEntry | AssistantEntry | ResultEntry | SummaryEntry;

/** The beginning of a conversation. */
interface BeginEntry {
  kind: 'begin';
  /** The id that the file gives it. */
  name: string | null;
  /** The file has only this conversation, so its name needs no number. */
  alone: boolean;
}

interface Position {
  /** The line of its record. */
  line: number;
  /** When it was recorded, ms. */
  at: number | null;
}

/** Text of a person, or of the program that made the recording. */
export interface SaidEntry extends Position {
  kind: 'said';
  /** `user`: the person who imports the file. */
  author: 'user' | 'system' | Author;
  /** The words. */
  text: string;
  /** The recording program did not show it to the model. */
  forPeople?: true;
}

/** A message of the model, with its calls. */
export interface AssistantEntry extends Position {
  kind: 'assistant';
  /** The text; empty if it only calls tools. */
  text: string;
  /** Calls of tools, in their order. */
  calls: ForeignCall[];
  /** What the model thought; null if nothing is recorded. */
  reasoning: Reasoning | null;
  /** Set if the turn failed or was aborted. */
  ended: { how: 'aborted' | 'failed'; message: string } | null;
  /** It continues the previous entry: the format has one record for each call of a step. */
  joins?: true;
}

/** A call of a tool, as it was recorded. */
export interface ForeignCall {
  /** Null if none is recorded: results are then matched in order. */
  id: string | null;
  /** Name of the tool; null if none is recorded. */
  name: string | null;
  /** As recorded: JSON, or text that should have been. */
  args: unknown;
  /** The recording ended within the arguments. */
  partial: boolean;
}

/** The result of a call. */
export interface ResultEntry extends Position {
  kind: 'result';
  /** Id of the call. Null: the oldest open one. */
  call: string | null;
  /** Name of the tool. */
  name: string | null;
  /** What the tool answered. */
  text: string;
  /** Whether it is an error. */
  failed: boolean;
}

/** A summary that the recording program made of all entries before the line `keptFrom`. */
export interface SummaryEntry extends Position {
  kind: 'summary';
  /** The summary. */
  text: string;
  /** Line of the first entry that it does not cover. */
  keptFrom: number;
  /** Used instead of `keptFrom` if a record is a whole conversation: number of entries before it that are not covered. */
  kept?: number;
  /** Paths of files that the covered entries read and modified. */
  files: { read: string[]; modified: string[] };
}

/** Null if the package is not installed. */
export async function findImporters(): Promise<ImportersPackage | null> {
  try {
    // `as string`: the core compiles without the package.
    return (await import('@troupe/importers' as string)) as ImportersPackage;
  } catch (cause) {
    if (isMissing(cause, NAME)) return null;
    throw cause;
  }
}

export function importersMissing(): TroupeError {
  const message = `a transcript of another program needs the package ${NAME}, which is not installed: npm install ${NAME}`;
  return new TroupeError('package_missing', message, { packages: [NAME] });
}
