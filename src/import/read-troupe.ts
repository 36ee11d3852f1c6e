import { TroupeError } from '../errors.ts';
import { EventDraft, tryParse } from '../events/index.ts';
import type { Entry, JsonRecord } from './entry.ts';
import { EXPORT_VERSION } from './export-conversation.ts';
import { excerpt, noteSkip } from './report.ts';
import type { ImportReport } from './report.ts';
import { isObject, textOf, timeOf } from './shape.ts';

/** Our own export: a header line, then one event a line, ids and envelopes as they were. */
export async function* readTroupe(
  records: AsyncIterable<JsonRecord>,
  report: ImportReport,
): AsyncGenerator<Entry, void> {
  let begun = false;
  for await (const { line, value } of records) {
    if (isObject(value) && 'troupe' in value) {
      checkVersion(value['troupe'], line);
      begun = true;
      yield { kind: 'begin', name: textOf(value['conversation']), alone: true };
      continue;
    }
    if (!isObject(value)) {
      noteSkip(report, 'unknown_line', line, excerpt(value));
      continue;
    }
    const { at, ...draft } = value;
    const parsed = tryParse(EventDraft, draft);
    if (!parsed.success) {
      noteSkip(report, 'invalid_event', line, excerpt(parsed.error.issues[0]?.message));
      continue;
    }
    if (!begun) yield { kind: 'begin', name: null, alone: true };
    begun = true;
    yield { kind: 'draft', line, at: timeOf(at), draft: parsed.data };
  }
}

function checkVersion(version: unknown, line: number): void {
  if (version === EXPORT_VERSION) return;
  throw new TroupeError(
    'import_invalid',
    `Line ${line}: export format version ${excerpt(version)} is not known; this Troupe reads version ${EXPORT_VERSION}.`,
    { line, version },
  );
}
