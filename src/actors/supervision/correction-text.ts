import type { TodoItem } from '../../events/index.ts';

/** Items that are named; more are counted. */
const MOST_NAMED = 12;
const MOST_TEXT = 120;

export function todoText(open: readonly TodoItem[]): string {
  const lines = open.slice(0, MOST_NAMED).map(({ text, status }) => `- [${status}] ${clipped(text)}`);
  if (open.length > MOST_NAMED) lines.push(`- and ${open.length - MOST_NAMED} more`);
  return [
    `Your turn cannot end yet: your list still has ${open.length} to be done.`,
    ...lines,
    'Go on with it. What is done, or not wanted any more, is marked as such with `todo`; a list for another time is given once more with `later`.',
  ].join('\n');
}

export function silentText(mayStaySilent: boolean): string {
  const choice = mayStaySilent ? ', or call `no_response` if nothing needs to be said' : '';
  return `Your turn cannot end yet: your answer had no words. Answer${choice}.`;
}

function clipped(text: string): string {
  const line = text.replace(/\s+/g, ' ').trim();
  return line.length > MOST_TEXT ? `${line.slice(0, MOST_TEXT).toWellFormed()}…` : line;
}
