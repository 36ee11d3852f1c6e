import type * as z from 'zod';
import { type Event, EVENT_KINDS, EventDraft, tryParse } from '../../events/index.ts';
import { TroupeError } from '../../base/errors.ts';
import type { DraftEntry } from './draft-writer.ts';
import type { TranscriptEntry, TranscriptRecord } from './importers.ts';
import {
  excerpt,
  type ImportNotes,
  noteSkip,
  isObject,
  type JsonObject,
  nameOf,
  textOf,
  timeOf,
} from './report.ts';

const EXPORT_VERSION = 1;
const KINDS: ReadonlySet<string> = new Set(EVENT_KINDS);

/**
 * A conversation as JSONL: a header, then one event per line. Without tenant, conversation, seq, tokens and the mark of an
 * altered event, which the importing log sets itself. The header says whether secrets were left out.
 */
export async function* exportConversation(
  pages: AsyncIterable<readonly Event[]>,
  conversation: string,
  secrets: 'hidden' | 'kept',
): AsyncGenerator<string, void> {
  yield `${JSON.stringify({ troupe: EXPORT_VERSION, conversation, ...(secrets === 'hidden' && { secrets }) })}\n`;
  for await (const events of pages) {
    for (const event of events) yield `${JSON.stringify(keptOf(event))}\n`;
  }
}

function keptOf({
  tenant: _tenant,
  conversation: _conversation,
  seq: _seq,
  tokens: _tokens,
  altered: _altered,
  ...kept
}: Event): Omit<Event, 'tenant' | 'conversation' | 'seq' | 'tokens' | 'altered'> {
  return kept;
}

export function isExport(value: unknown): boolean {
  return isObject(value) && typeof value['troupe'] === 'number';
}

/** Reads our own export. Ids and envelopes stay as they are. */
export async function* readTroupe(
  records: AsyncIterable<TranscriptRecord>,
  notes: ImportNotes,
): AsyncGenerator<TranscriptEntry | DraftEntry, void> {
  let begun = false;
  for await (const { line, value } of records) {
    if (isObject(value) && 'troupe' in value) {
      checkVersion(value['troupe'], line);
      begun = true;
      yield { kind: 'begin', name: textOf(value['conversation']), alone: true };
      continue;
    }
    if (!isObject(value)) {
      noteSkip(notes, 'unknown_line', line, value);
      continue;
    }
    const { at, ...draft } = value;
    // Checked first, because the schema of all kinds takes long to reject an event of no kind.
    if (!KINDS.has(nameOf(draft['kind'])) || typeof draft['id'] !== 'string' || !isObject(draft['body'])) {
      noteSkip(notes, 'invalid_event', line, value);
      continue;
    }
    const parsed = parseDraft(draft, line, notes);
    if (!parsed.success) {
      noteSkip(notes, 'invalid_event', line, parsed.error.issues[0]?.message);
      continue;
    }
    if (!begun) yield { kind: 'begin', name: null, alone: true };
    begun = true;
    yield { kind: 'draft', line, at: timeOf(at), draft: parsed.data };
  }
}

/** Fields that this version does not know are left out of an event that is otherwise valid. */
function parseDraft(draft: JsonObject, line: number, notes: ImportNotes): z.ZodSafeParseResult<EventDraft> {
  const parsed = tryParse(EventDraft, draft);
  if (parsed.success) return parsed;
  const unknown = parsed.error.issues.flatMap((each) => (each.code === 'unrecognized_keys' ? [each] : []));
  if (unknown.length < parsed.error.issues.length) return parsed;
  for (const { path, keys } of unknown) {
    const at = path.reduce<unknown>((value, key) => (value as Record<PropertyKey, unknown>)[key], draft);
    for (const key of keys) delete (at as JsonObject)[key];
    noteSkip(notes, 'unknown_field', line, keys.join(', '));
  }
  return tryParse(EventDraft, draft);
}

function checkVersion(version: unknown, line: number): void {
  if (version === EXPORT_VERSION) return;
  throw new TroupeError(
    'import_invalid',
    `Line ${line}: export format version ${excerpt(version)} is not known; this Troupe reads version ${EXPORT_VERSION}.`,
    { line, version },
  );
}
