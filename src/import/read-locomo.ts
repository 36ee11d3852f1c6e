import type { Author } from '../events/index.ts';
import type { Entry, JsonRecord } from './entry.ts';
import { excerpt, noteRepair, noteSkip } from './report.ts';
import type { ImportReport } from './report.ts';
import { isObject, sessionsOf, textOf, validTime } from './shape.ts';
import type { JsonObject } from './shape.ts';

/** LoCoMo: two people over many sessions (`session_1`, `session_2`, …), each turn `{speaker, dia_id, text}`. */
export async function* readLocomo(
  records: AsyncIterable<JsonRecord>,
  report: ImportReport,
): AsyncGenerator<Entry, void> {
  for await (const { line, value } of records) {
    const sessions = isObject(value) ? sessionsOf(value) : [];
    if (sessions.length === 0) {
      noteSkip(report, 'unknown_line', line, excerpt(value));
      continue;
    }
    yield { kind: 'begin', name: null, alone: false };
    for (const session of sessions) {
      const at = sessionTime(session.time);
      for (const turn of session.turns) {
        const author = isObject(turn) ? speakerOf(turn) : null;
        if (!isObject(turn) || author === null) {
          noteSkip(report, 'unknown_line', line, excerpt(turn));
          continue;
        }
        yield { kind: 'said', line, at, author, text: turnText(turn, line, report) };
      }
    }
  }
}

function speakerOf(turn: JsonObject): Author | null {
  const name = textOf(turn['speaker'])?.slice(0, 100);
  if (name === undefined) return null;
  return { kind: 'user', id: name.toLowerCase().replaceAll(/\s+/g, '-'), name };
}

function turnText(turn: JsonObject, line: number, report: ImportReport): string {
  const text = typeof turn['text'] === 'string' ? turn['text'] : '';
  const caption = textOf(turn['blip_caption']);
  if (caption === null && turn['img_url'] == null) return text;
  noteRepair(report, 'placeholder', line, `image in ${excerpt(turn['dia_id'])}`);
  const image = caption === null ? '[image]' : `[image: ${caption}]`;
  return text === '' ? image : `${text}\n${image}`;
}

const MONTHS = 'january february march april may june july august september october november december'.split(
  ' ',
);

/** "1:56 pm on 8 May, 2023", which names no zone and is taken as UTC. */
function sessionTime(time: unknown): number | null {
  if (typeof time !== 'string') return null;
  const match = /^(\d{1,2}):(\d{2}) (am|pm) on (\d{1,2}) (\w+),? (\d{4})$/i.exec(time.trim());
  if (!match) return null;
  const [, hour, minute, half, day, monthName, year] = match;
  const month = MONTHS.indexOf(monthName?.toLowerCase() ?? '');
  if (month === -1) return null;
  const hours = (Number(hour) % 12) + (half?.toLowerCase() === 'pm' ? 12 : 0);
  return validTime(Date.UTC(Number(year), month, Number(day), hours, Number(minute)));
}
