import { TroupeError } from '../../base/errors.ts';
import { isMissing } from '../../base/optional-packages.ts';
import type { Author, Reasoning } from '../../events/index.ts';
import type { ImportNotes } from './report.ts';

const NAME = '@troupe/importers';

/** The interface of `@troupe/importers` that the core uses. The package is separate and optional. */
export interface ImportersPackage {
  /** The reader of each format, by the name that people give. */
  formats: ReadonlyMap<string, TranscriptReader>;
  /** The format whose reader understands this value of a file; null: none does, but a later value may still be known. */
  detectFormat(value: unknown): string | null;
}

/**
 * Reads the records of a file as entries, the first a `begin`. Never throws for bad content, which it notes; throws
 * `import_invalid` for a file that it cannot hold.
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

/** What a transcript holds, in words that are no format's. Ids, places and authors of the log are given to it later. */
export type TranscriptEntry = BeginEntry | SaidEntry | AssistantEntry | ResultEntry | SummaryEntry;

/** Where a conversation begins. */
interface BeginEntry {
  kind: 'begin';
  /** The id that the file gives it. */
  name: string | null;
  /** The file has only this one, so its name needs no number. */
  alone: boolean;
}

interface Position {
  /** The line of its record. */
  line: number;
  /** When it was recorded, ms. */
  at: number | null;
}

/** Words of a person, or of the program that recorded them. */
export interface SaidEntry extends Position {
  kind: 'said';
  /** `user`: the person for whom the file is imported. */
  author: 'user' | 'system' | Author;
  /** The words. */
  text: string;
  /** It was kept from the model where it was recorded. */
  forPeople?: true;
}

/** A message of the model, with its calls. */
export interface AssistantEntry extends Position {
  kind: 'assistant';
  /** The words; empty where it only calls. */
  text: string;
  /** Calls of tools, in their order. */
  calls: ForeignCall[];
  /** What the model thought; null if nothing is recorded. */
  reasoning: Reasoning | null;
  /** Set if the turn failed or was aborted. */
  ended: { how: 'aborted' | 'failed'; message: string } | null;
  /** It continues the entry before it: the format has a record for each call of a step. */
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
  /** It is an error. */
  failed: boolean;
}

/** A summary that the recording program made of all entries before the line `keptFrom`. */
export interface SummaryEntry extends Position {
  kind: 'summary';
  /** The summary. */
  text: string;
  /** Line of the first entry that it does not cover. */
  keptFrom: number;
  /** In place of `keptFrom`, where a record is a whole conversation: so many entries before it are not covered. */
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
