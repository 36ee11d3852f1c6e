import type { PromptDiff } from '../../library/troupe.ts';
import {
  count,
  cutOff,
  number,
  paint,
  paragraph,
  printable,
  screenWidth,
  type Style,
  table,
} from './output.ts';

/** Limits of the printed text. `--json` has everything. */
const MOST_MESSAGES = 5;
const MOST_LINES = 24;
const WIDTH = 80;

const MARKS = { equal: ' ', changed: '~', added: '+', removed: '-' } as const;
const LINE_STYLES: Record<string, Style> = { '+': 'green', '-': 'red', '@': 'cyan' };

/** The changes between two prompts as text: layers, the cause of a cache break, the first messages that differ. */
export function renderDiff(diff: PromptDiff): string {
  const { changes } = diff.messages;
  const more = changes.length - MOST_MESSAGES;
  return [
    renderHeading(diff),
    renderLayers(diff),
    ...changes.slice(0, MOST_MESSAGES).map(renderChange),
    ...(more > 0 ? [paint('dim', `… and ${count(more, 'more message')}; --json shows all of them`)] : []),
  ].join('\n\n');
}

function renderHeading({ a, b, tokens, messages, broke }: PromptDiff): string {
  const cache = broke
    ? `broke in ${broke.layer}${broke.message === null ? '' : ` at message ${broke.message}`}: ${broke.cause}`
    : 'nothing broke: the second prompt begins with all of the first';
  const { shared, firstDifference } = messages;
  const same =
    firstDifference === null
      ? `all ${number(shared)} are the same`
      : `the first ${number(shared)} of ${number(a.count)} and ${number(b.count)} are the same`;
  return [
    paint('bold', `@${b.agent}: ${sideOf(a)} → ${sideOf(b)}`),
    paragraph('tokens', `${number(tokens.a)} → ${number(tokens.b)} (${signed(tokens.delta)})`),
    paragraph('messages', same),
    paint(broke ? 'yellow' : 'green', paragraph('cache', printable(cache))),
  ].join('\n');
}

function sideOf({ turn, step }: PromptDiff['a']): string {
  return turn === null ? 'next prompt' : `${turn}, step ${step}`;
}

function signed(value: number): string {
  return value > 0 ? `+${number(value)}` : number(value);
}

function renderLayers({ layers }: PromptDiff): string {
  const heads = ['  layer', 'before', 'after', 'tokens', ''].map((head) => paint('dim', head));
  const present = layers.filter(({ change, tokens }) => change === 'changed' || tokens.a + tokens.b > 0);
  const rows = present.map(({ name, change, tokens }) =>
    [`${MARKS[change]} ${name}`, number(tokens.a), number(tokens.b), signed(tokens.delta), change].map(
      (cell) => (change === 'equal' ? paint('dim', cell) : cell),
    ),
  );
  return table([heads, ...rows], [1, 2, 3]);
}

function renderChange({ a, b, role, hunks }: PromptDiff['messages']['changes'][number]): string {
  const which = a === null ? `+ ${b}` : b === null ? `- ${a}` : a === b ? `~ ${a}` : `~ ${a} → ${b}`;
  const width = Math.min(screenWidth(), WIDTH);
  const lines = hunks.flatMap((hunk) => [
    `@@ -${hunk.aStart},${hunk.aLines} +${hunk.bStart},${hunk.bLines} @@`,
    ...hunk.lines,
  ]);
  const more = lines.length - MOST_LINES;
  return [
    paint('bold', `── ${which} ${role} `.padEnd(width, '─')),
    ...lines
      .slice(0, MOST_LINES)
      .map((line) => paint(LINE_STYLES[line.charAt(0)] ?? 'reset', cutOff(printable(line), width))),
    ...(more > 0 ? [paint('dim', `… ${count(more, 'more line')}`)] : []),
  ].join('\n');
}
