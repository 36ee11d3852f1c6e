import type { CallPair, ComparedCall, ComparedTurn, TurnComparison } from '../../library/troupe.ts';
import { clip, count, isPainted, number, paint, printable, screenWidth, table } from './output.ts';

/** Two turns side by side as text: what they took, their calls, and their words with the differences. */
export function renderComparison({ a, b, rerun, calls, omitted, words }: TurnComparison): string {
  const changed = rerun ? (rerun.change?.kind ?? 'nothing') : null;
  return [
    ...(changed === null ? [] : [`changed: ${changed}; tools: ${rerun?.tools}`]),
    table([['', paint('bold', a.turn), paint('bold', b.turn)], ...rowsOf(a, b)]),
    ...(calls.length > 0 ? [table(calls.map(rowOf))] : []),
    ...(omitted > 0 ? [paint('dim', `… and ${count(omitted, 'more call')}`)] : []),
    words.map(({ change, text }) => wordsIn(change, printable(text))).join(''),
  ].join('\n\n');
}

function rowsOf(a: ComparedTurn, b: ComparedTurn): string[][] {
  const row = (name: string, of: (turn: ComparedTurn) => string) => [paint('dim', name), of(a), of(b)];
  return [
    row('state', ({ status, problem }) => (problem === null ? status : `${status}: ${clip(problem, 60)}`)),
    row('model', ({ model }) => model ?? '-'),
    row('steps', ({ steps }) => number(steps)),
    row('tokens in', ({ usage }) => `${number(usage.input)} (${number(usage.cacheRead)} cached)`),
    row('tokens out', ({ usage }) => number(usage.output)),
    row('cost', ({ cost }) => (cost === null ? '-' : `$${cost.toFixed(cost < 0.01 ? 6 : 4)}`)),
    row('time', ({ ms }) => (ms === null ? '-' : `${number(ms)} ms`)),
  ];
}

function rowOf({ name, same, a, b }: CallPair): string[] {
  const width = Math.max(24, Math.floor((screenWidth() - 24) / 2));
  const shown = (call: ComparedCall | null) =>
    call ? clip(`${call.args} → ${call.outcome ?? 'no result'}: ${call.result}`, width) : '-';
  return [same ? '=' : paint('yellow', '≠'), name, shown(a), shown(b)];
}

function wordsIn(change: 'equal' | 'removed' | 'added', text: string): string {
  if (change === 'equal') return text;
  const isRemoved = change === 'removed';
  if (isPainted()) return paint(isRemoved ? ['red', 'strikethrough'] : 'green', text);
  return isRemoved ? `[-${text}-]` : `{+${text}+}`;
}
