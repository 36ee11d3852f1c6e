import type { Event } from './troupe.ts';
import type { ConversationRun } from './conversation-run.ts';
import type { Moment, Often } from './moment.ts';
import { excerpt, howToOpen } from './show-run.ts';

/** What a matcher found. */
export interface Verdict {
  /** Whether it holds. */
  pass: boolean;
  /** What a reader is told if it was expected to be the other way round. */
  message: () => string;
}

/** Whether a moment happened, as often as expected. */
export function judgeMoment(run: ConversationRun, moment: Moment, { times, turn }: Often = {}): Verdict {
  const found = moment.find(run).filter((event) => turn === undefined || isInTurn(event, turn));
  const pass = times === undefined ? found.length > 0 : found.length === times;
  const often = times === undefined ? '' : `, ${count(times)}`;
  const where = turn === undefined ? '' : `, in turn ${turn}`;
  return {
    pass,
    message() {
      if (pass) return report(run, `expected that not: ${moment.words}${where}${often}`, found, 'it');
      const seen = found.length > 0 ? ` It happened ${count(found.length)}.` : '';
      const matter = found.length > 0 ? found : moment.near(run);
      return report(run, `expected that ${moment.words}${where}${often}.${seen}`, matter);
    },
  };
}

/** What was expected, the part of the log that matters, and how to open it. */
export function report(
  run: ConversationRun,
  expected: string,
  matter: readonly Event[],
  mark: 'what comes closest' | 'it' = 'what comes closest',
): string {
  const [first] = matter;
  const about = matter.length > 0 ? `The log (> is ${mark})` : 'The end of the log';
  const open = run.place ? `\n\n${howToOpen(run, run.place, first)}` : '';
  return `${expected}\n\n${about}:\n${excerpt(run, matter)}${open}`;
}

function isInTurn({ turn }: Event, number: number): boolean {
  return turn !== undefined && turn.endsWith(`:${number}`);
}

function count(times: number): string {
  return times === 1 ? 'once' : `${times} times`;
}
