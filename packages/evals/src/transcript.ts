import type { Event } from './troupe.ts';
import type { ConversationRun } from './conversation-run.ts';
import { linesOf, type RunLine } from './run-lines.ts';

const MOST_TEXT = 8_000;
const MOST_ALL = 200_000;

/**
 * What was said and called, for a judge: one JSON object a line, so that no words in it can pass for another line. Without
 * times and ids of calls. Long words are cut, and a long conversation in its middle.
 */
export function transcriptOf(run: ConversationRun): string {
  const lines = linesOf(run).flatMap((line) => {
    if (line.kind === 'ended') return [];
    return JSON.stringify(line.kind === 'said' ? spoken(line.event, line.text) : called(line));
  });
  return cutMiddle(lines).join('\n');
}

function called({ who, tool, args, result }: Extract<RunLine, { kind: 'called' }>): object {
  return { who, kind: 'call', tool, arguments: cut(args), result: result && cut(result.body.content) };
}

function spoken({ author, to, kind }: Event, text: string): object {
  return { who: author.id, is: author.kind, ...(to.length > 0 && { to }), kind, text: cut(text) };
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
