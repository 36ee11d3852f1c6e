import type { Event } from '../events/index.ts';
import { callsOf, type ConversationRun } from './conversation-run.ts';
import { eventWords, isSpoken } from './event-words.ts';

const MOST_TEXT = 8_000;
const MOST_ALL = 200_000;

/**
 * What was said and called, for a judge: one JSON object a line, so that no words in it can pass for another line. Without
 * times and ids of calls. Long words are cut, and a long conversation in its middle.
 */
export function transcriptOf(run: ConversationRun): string {
  const calls = Map.groupBy(callsOf(run), ({ step }) => step);
  const lines = run.events.flatMap((event) => {
    const own = event.kind === 'step' ? (calls.get(event) ?? []) : [];
    const said = isSpoken(event) && eventWords(event) !== '' ? [spoken(event)] : [];
    const made = own.map(({ turn, tool, args, result }) => ({
      who: turn.agent,
      kind: 'call',
      tool,
      arguments: cut(args),
      result: result && cut(result.body.content),
    }));
    return [...said, ...made].map((line) => JSON.stringify(line));
  });
  return cutMiddle(lines).join('\n');
}

function spoken(event: Event): object {
  const { author, to, kind } = event;
  return {
    who: author.id,
    is: author.kind,
    ...(to.length > 0 && { to }),
    kind,
    text: cut(eventWords(event)),
  };
}

function cut(text: string): string {
  if (text.length <= MOST_TEXT) return text;
  return `${text.slice(0, MOST_TEXT).toWellFormed()}… (${text.length - MOST_TEXT} more characters)`;
}

function cutMiddle(lines: readonly string[]): readonly string[] {
  const fits = (some: readonly string[]) => {
    let left = MOST_ALL / 2;
    const end = some.findIndex((line) => (left -= line.length) < 0);
    return end < 0 ? some.length : end;
  };
  const first = fits(lines);
  const last = Math.min(fits(lines.toReversed()), lines.length - first);
  const skipped = lines.length - first - last;
  if (skipped === 0) return lines;
  const tail = last === 0 ? [] : lines.slice(-last);
  return [...lines.slice(0, first), JSON.stringify({ kind: 'cut', lines: skipped }), ...tail];
}
