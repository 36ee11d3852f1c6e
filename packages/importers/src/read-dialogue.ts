import { type ForeignCall, type SaidEntry, excerpt, sessionsOf } from './parts.ts';
import {
  isObject,
  type JsonObject,
  textOf,
  validTime,
  type ImportNotes,
  noteRepair,
  noteSkip,
  type TranscriptEntry,
  type TranscriptRecord,
} from './troupe.ts';

type Role = 'user' | 'assistant' | 'system' | 'tool';
type Turn = { role: Role; text: string };

/** One dialogue per line: `{messages_display: "user: …\nassistant: …\ntool: …"}`. A text may span several rows. */
export async function* readDialogue(
  records: AsyncIterable<TranscriptRecord>,
  report: ImportNotes,
): AsyncGenerator<TranscriptEntry, void> {
  for await (const { line, value } of records) {
    const text = isObject(value) ? value['messages_display'] : null;
    if (typeof text !== 'string') {
      noteSkip(report, 'unknown_line', line, value);
      continue;
    }
    yield { kind: 'begin', name: null, alone: false };
    yield* readTurns(line, splitTurns(text, line, report), report);
  }
}

function* readTurns(line: number, turns: Turn[], report: ImportNotes): Generator<TranscriptEntry, void> {
  let calls = 0;
  for (let i = 0; i < turns.length;) {
    const turn = turns[i];
    if (!turn) return;
    if (turn.role === 'user' || turn.role === 'system') {
      yield { kind: 'said', line, at: null, author: turn.role, text: turn.text };
      i += 1;
      continue;
    }
    const said = turn.role === 'assistant' && turn.text !== 'None' ? turn.text : '';
    if (turn.role === 'assistant') i += 1;
    const results = resultsAt(turns, i);
    i += results.length;
    yield* stepEntries({ line, said, results, callsBefore: calls }, report);
    calls += results.length;
  }
}

/** Texts of the consecutive tool turns that begin at an index. */
function resultsAt(turns: readonly Turn[], from: number): string[] {
  let end = from;
  while (turns[end]?.role === 'tool') end += 1;
  return turns.slice(from, end).map(({ text }) => text);
}

/** Gives each `tool:` text an inferred call, because the format names neither the tool nor its arguments. */
function* stepEntries(
  {
    line,
    said,
    results,
    callsBefore,
  }: { line: number; said: string; results: string[]; callsBefore: number },
  report: ImportNotes,
): Generator<TranscriptEntry, void> {
  const calls = results.map((_, index) => inferredCall(callsBefore + index + 1));
  for (const call of calls) noteRepair(report, 'inferred_call', line, call.id ?? '');
  yield { kind: 'assistant', line, at: null, text: said, calls, reasoning: null, ended: null };
  for (const [index, text] of results.entries()) {
    const call = calls[index]?.id ?? null;
    yield { kind: 'result', line, at: null, call, name: 'tool', text, failed: text.startsWith('Error:') };
  }
}

function inferredCall(number: number): ForeignCall {
  return { id: `call-${number}`, name: 'tool', args: '{}', partial: false };
}

function splitTurns(display: string, line: number, report: ImportNotes): Turn[] {
  const turns: Turn[] = [];
  for (const row of display.split('\n')) {
    const match = /^(user|assistant|system|tool):(?: (.*))?$/s.exec(row);
    const last = turns.at(-1);
    if (match) turns.push({ role: match[1] as Role, text: match[2] ?? '' });
    else if (last) last.text += `\n${row}`;
    else if (row.trim() !== '') noteSkip(report, 'unknown_line', line, row);
  }
  return turns;
}

/** LoCoMo: two people over many sessions (`session_1`, `session_2`, …), each turn `{speaker, dia_id, text}`. */
export async function* readLocomo(
  records: AsyncIterable<TranscriptRecord>,
  report: ImportNotes,
): AsyncGenerator<TranscriptEntry, void> {
  for await (const { line, value } of records) {
    const sessions = isObject(value) ? sessionsOf(value) : [];
    if (sessions.length === 0) {
      noteSkip(report, 'unknown_line', line, value);
      continue;
    }
    yield { kind: 'begin', name: null, alone: false };
    for (const session of sessions) {
      const at = sessionTime(session.time);
      for (const turn of session.turns) {
        const author = isObject(turn) ? speakerOf(turn) : null;
        if (!isObject(turn) || author === null) {
          noteSkip(report, 'unknown_line', line, turn);
          continue;
        }
        yield { kind: 'said', line, at, author, text: turnText(turn, line, report) };
      }
    }
  }
}

/** In characters. */
const MOST_NAME = 100;

function speakerOf(turn: JsonObject): SaidEntry['author'] | null {
  const name = textOf(turn['speaker'])?.slice(0, MOST_NAME);
  if (name === undefined) return null;
  // Lower case may be longer: "İ" becomes two characters.
  const id = name.toLowerCase().replaceAll(/\s+/g, '-').slice(0, MOST_NAME);
  return { kind: 'user', id, name };
}

function turnText(turn: JsonObject, line: number, report: ImportNotes): string {
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

/** Parses "1:56 pm on 8 May, 2023". The format has no time zone; UTC is assumed. */
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
