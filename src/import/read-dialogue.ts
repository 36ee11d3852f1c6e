import type { Entry, ForeignCall, JsonRecord } from './entry.ts';
import { excerpt, noteRepair, noteSkip } from './report.ts';
import type { ImportReport } from './report.ts';
import { isObject } from './shape.ts';

type Role = 'user' | 'assistant' | 'system' | 'tool';
type Turn = { role: Role; text: string };

/** One dialogue a line: `{messages_display: "user: …\nassistant: …\ntool: …"}`; a text may span lines. */
export async function* readDialogue(
  records: AsyncIterable<JsonRecord>,
  report: ImportReport,
): AsyncGenerator<Entry, void> {
  for await (const { line, value } of records) {
    const text = isObject(value) ? value['messages_display'] : null;
    if (typeof text !== 'string') {
      noteSkip(report, 'unknown_line', line, excerpt(value));
      continue;
    }
    yield { kind: 'begin', name: null, alone: false };
    yield* readTurns(line, splitTurns(text, line, report), report);
  }
}

/** The format names neither the tool nor its arguments, so each `tool:` text gets a call of its own. */
function* readTurns(line: number, turns: Turn[], report: ImportReport): Generator<Entry, void> {
  let calls = 0;
  for (let i = 0; i < turns.length; i += 1) {
    const turn = turns[i];
    if (!turn) continue;
    if (turn.role === 'user' || turn.role === 'system') {
      yield { kind: 'said', line, at: null, author: turn.role, text: turn.text };
      continue;
    }
    const said = turn.role === 'assistant' && turn.text !== 'None' ? turn.text : '';
    const first = turn.role === 'tool' ? i : i + 1;
    const results: string[] = [];
    for (let j = first; turns[j]?.role === 'tool'; j += 1) results.push(turns[j]?.text ?? '');
    i = first + results.length - 1;
    const inferred: ForeignCall[] = results.map(() => inferredCall((calls += 1)));
    for (const call of inferred) noteRepair(report, 'inferred_call', line, call.id ?? '');
    yield { kind: 'assistant', line, at: null, text: said, calls: inferred, reasoning: null, ended: null };
    for (const [index, text] of results.entries()) {
      const call = inferred[index]?.id ?? null;
      yield { kind: 'result', line, at: null, call, name: 'tool', text, failed: text.startsWith('Error:') };
    }
  }
}

function inferredCall(number: number): ForeignCall {
  return { id: `call-${number}`, name: 'tool', args: '{}', partial: false };
}

function splitTurns(display: string, line: number, report: ImportReport): Turn[] {
  const turns: Turn[] = [];
  for (const row of display.split('\n')) {
    const match = /^(user|assistant|system|tool):(?: (.*))?$/s.exec(row);
    const last = turns.at(-1);
    if (match) turns.push({ role: match[1] as Role, text: match[2] ?? '' });
    else if (last) last.text += `\n${row}`;
    else if (row.trim() !== '') noteSkip(report, 'unknown_line', line, excerpt(row));
  }
  return turns;
}
