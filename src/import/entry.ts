import type { Author, ConversationId, EventDraft, Reasoning } from '../events/index.ts';
import { excerpt, type ImportReport, noteRepair } from './report.ts';
import { isObject, type JsonObject, jsonText, textOf } from './shape.ts';

export type ForeignCall = { id: string | null; name: string | null; args: unknown; partial: boolean };
type ForeignResult = { call: string | null; name: string | null; text: string; failed: boolean };

type Position = { line: number; at: number | null };

export type SaidEntry = Position & {
  kind: 'said';
  author: 'user' | 'system' | Author;
  text: string;
  /** It was kept from the model where it was recorded. */
  forPeople?: true;
};
export type AssistantEntry = Position & {
  kind: 'assistant';
  text: string;
  calls: ForeignCall[];
  reasoning: Reasoning | null;
  /** Set if the turn failed or was aborted. */
  ended: { how: 'aborted' | 'failed'; message: string } | null;
};
export type ResultEntry = Position & { kind: 'result' } & ForeignResult;
/** A summary that the recording program made of all entries before the line `keptFrom`. */
export type SummaryEntry = Position & {
  kind: 'summary';
  text: string;
  keptFrom: number;
  files: { read: string[]; modified: string[] };
};
/** An event of our own format. */
type DraftEntry = Position & { kind: 'draft'; draft: EventDraft };
export type ContentEntry = SaidEntry | AssistantEntry | ResultEntry | SummaryEntry | DraftEntry;

/** Start of a conversation. `alone`: the file has only this one, so its name needs no number. */
type BeginEntry = { kind: 'begin'; name: string | null; alone: boolean };
/** An item of the neutral transcript between the lines of a foreign format and our drafts. */
export type Entry = BeginEntry | ContentEntry;
export type NamedEntry = { kind: 'begin'; conversation: ConversationId } | ContentEntry;

export type JsonRecord = { line: number; value: unknown };
/** Reads records as entries, the first a `begin`. Never throws for bad content: the report lists it. */
export type FormatReader = (
  records: AsyncIterable<JsonRecord>,
  report: ImportReport,
) => AsyncGenerator<Entry, void>;

/** The content of a message by kind. The JSON formats differ only in names. */
export type Parts = {
  text: string;
  calls: ForeignCall[];
  results: ForeignResult[];
  reasoning: Reasoning | null;
};

type Origin = { provider: string; model: string };
type Place = { report: ImportReport; line: number };

/** Reads content that is a text, a list of parts, or nothing; null if it is anything else. */
export function readParts(content: unknown, place: Place, origin: Origin | null = null): Parts | null {
  const parts: Parts = { text: '', calls: [], results: [], reasoning: null };
  if (content == null) return parts;
  if (typeof content === 'string') return { ...parts, text: content };
  if (!Array.isArray(content)) return null;
  const texts: string[] = [];
  for (const part of content) {
    const text = readPart(part, parts, place, origin);
    if (text !== null) texts.push(text);
  }
  return { ...parts, text: texts.join('\n') };
}

function readPart(part: unknown, parts: Parts, place: Place, origin: Origin | null): string | null {
  if (typeof part === 'string') {
    noteRepair(place.report, 'plain_text_part', place.line, excerpt(part));
    return part;
  }
  if (!isObject(part)) return placeholder(excerpt(part), place);
  switch (part['type']) {
    case 'text':
    case 'input_text':
    case 'output_text':
      return typeof part['text'] === 'string' ? part['text'] : placeholder('text', place);
    case 'refusal':
      return textOf(part['refusal']);
    case 'toolCall':
      parts.calls.push(readCall(part, 'arguments'));
      return null;
    case 'tool_use':
      parts.calls.push(readCall(part, 'input'));
      return null;
    case 'tool_result':
      parts.results.push(readResult(part, place));
      return null;
    case 'thinking':
    case 'redacted_thinking':
      keepReasoning(part, parts, place, origin);
      return null;
    default:
      return placeholder(partName(part), place);
  }
}

function readCall(part: JsonObject, argsKey: string): ForeignCall {
  const partial = typeof part['partialJson'] === 'string';
  return { id: textOf(part['id']), name: textOf(part['name']), args: part[argsKey], partial };
}

function readResult(part: JsonObject, place: Place): ForeignResult {
  const content = readParts(part['content'], place)?.text ?? jsonText(part['content']);
  return { call: textOf(part['tool_use_id']), name: null, text: content, failed: part['is_error'] === true };
}

/** Keeps signed reasoning, one block per step. No provider accepts reasoning without its signature. */
function keepReasoning(part: JsonObject, parts: Parts, place: Place, origin: Origin | null): void {
  const signature = textOf(part['signature']) ?? textOf(part['thinkingSignature']);
  const text = part['thinking'];
  if (origin === null || signature === null || typeof text !== 'string' || parts.reasoning !== null) {
    noteRepair(
      place.report,
      'reasoning_dropped',
      place.line,
      signature === null ? 'unsigned' : 'no place for it',
    );
    return;
  }
  parts.reasoning = { text, signature, ...origin };
}

function placeholder(what: string, place: Place): string {
  noteRepair(place.report, 'placeholder', place.line, what);
  return `[${what}]`;
}

function partName(part: JsonObject): string {
  const type = textOf(part['type']) ?? 'unknown part';
  return type.startsWith('image') || type === 'input_image' ? 'image' : type.slice(0, 60);
}
