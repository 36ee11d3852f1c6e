import { checkLog, type Event, withoutStaleNote } from './troupe.ts';
import { callsOf, type ConversationRun } from './conversation-run.ts';
import type { Moment } from './moment.ts';
import { report, type Verdict } from './verdict.ts';

/** Most of each that a run may take. */
export interface Bounds {
  /** Turns of all agents. */
  turns?: number | undefined;
  /** Model calls. */
  steps?: number | undefined;
  /** Tool calls. */
  calls?: number | undefined;
  /** Tokens of all model calls, in and out. */
  tokens?: number | undefined;
  /** US dollars. A model without a price fails this bound. */
  dollars?: number | undefined;
  /** Minutes on the clock of the conversation. */
  minutes?: number | undefined;
}

const UNITS = ['turns', 'steps', 'calls', 'tokens', 'dollars', 'minutes'] as const;
const MS_PER_MINUTE = 60_000;

/** What a run has taken. Dollars are null if a model has no price. */
export function takenBy(run: ConversationRun): Record<(typeof UNITS)[number], number | null> {
  const { turns, durationMs } = run;
  const sum = (of: (turn: ConversationRun['turns'][number]) => number) =>
    turns.reduce((total, turn) => total + of(turn), 0);
  const isPriced = turns.every(({ cost }) => cost !== null);
  return {
    turns: turns.length,
    steps: sum(({ prompts }) => prompts.length),
    calls: callsOf(run).length,
    tokens: sum(({ usage }) => usage.input + usage.output),
    dollars: isPriced ? sum(({ cost }) => cost ?? 0) : null,
    minutes: durationMs / MS_PER_MINUTE,
  };
}

export function judgeBounds(run: ConversationRun, bounds: Bounds): Verdict {
  const taken = takenBy(run);
  const over = UNITS.flatMap((unit) => {
    const [most, used] = [bounds[unit], taken[unit]];
    if (most === undefined || (used !== null && used <= most)) return [];
    return [`${used === null ? 'an unknown number of' : Number(used.toFixed(4))} ${unit}, at most ${most}`];
  });
  return {
    pass: over.length === 0,
    message: () =>
      over.length === 0
        ? `expected that it takes more than ${JSON.stringify(bounds)}; it took ${JSON.stringify(taken)}`
        : report(run, `expected that it takes less: it took ${over.join('; ')}`, []),
  };
}

/** Within how much of a run moments are looked for. */
export interface Within {
  /** Most turns that may start from the first of the moments to the last. Default: any number. */
  turns?: number | undefined;
}

/** Each moment is looked for behind the one before. */
export function judgeOrder(
  run: ConversationRun,
  moments: readonly Moment[],
  { turns }: Within = {},
): Verdict {
  const order = new Map(run.events.map((event, at) => [event, at]));
  const found: Event[] = [];
  for (const moment of moments) {
    const after = found.length === 0 ? -1 : (order.get(found.at(-1)!) ?? -1);
    const next = moment.find(run).find((event) => (order.get(event) ?? -1) > after);
    if (!next) return missing(run, moment, found, moments);
    found.push(next);
  }
  const [first, last] = [found[0], found.at(-1)];
  const starts = run.events.slice(
    first ? order.get(first) : 0,
    last ? (order.get(last) ?? 0) + 1 : undefined,
  );
  const took = starts.filter(({ kind }) => kind === 'turn.started').length;
  const pass = turns === undefined || took <= turns;
  return {
    pass,
    message: () =>
      report(
        run,
        pass
          ? `expected another order than: ${listed(moments)}`
          : `expected this within ${turns} turns, it took ${took}: ${listed(moments)}`,
        found,
      ),
  };
}

function missing(
  run: ConversationRun,
  moment: Moment,
  found: readonly Event[],
  moments: readonly Moment[],
): Verdict {
  const before = moments[found.length - 1];
  const earlier = before && moment.find(run).length > 0 ? ' It happened earlier only.' : '';
  const place = before ? `, after ${before.words}` : '';
  const expected = `expected that ${moment.words}${place}.${earlier}\nin the order: ${listed(moments)}`;
  return {
    pass: false,
    message: () => report(run, expected, [...found, ...moment.find(run), ...moment.near(run)]),
  };
}

function listed(moments: readonly Moment[]): string {
  return moments.map(({ words }, at) => `${at + 1}. ${words}`).join('; ');
}

/** Calls of one turn with equal tool, arguments and result: from so many on it is a loop. */
const LOOP = 4;

/**
 * What no conversation may have: an event twice, a gap, an input that is not answered or answered twice, an agent that
 * addresses itself, a turn that has not ended, a loop that nothing stopped.
 */
export function judgeSoundness(run: ConversationRun): Verdict {
  const problems = [
    ...checkLog(run.events, []).map(({ invariant, problem }) => ({
      what: `${problem} (${invariant})`,
      at: null,
    })),
    ...run.events.flatMap((at) => (isToItself(at) ? [{ what: `${at.author.id} talks to itself`, at }] : [])),
    ...run.turns.flatMap(({ id, status, events }) =>
      status === 'open' ? [{ what: `the turn ${id} has not ended`, at: events[0] ?? null }] : [],
    ),
    ...loopsOf(run),
  ];
  const words = problems.map(({ what }) => `  ${what}`).join('\n');
  return {
    pass: problems.length === 0,
    message: () =>
      problems.length === 0
        ? 'expected that the log is not sound'
        : report(
            run,
            `expected that the log is sound:\n${words}`,
            problems.flatMap(({ at }) => at ?? []),
          ),
  };
}

function isToItself({ author, to, kind }: Event): boolean {
  return kind === 'message' && author.kind === 'agent' && to.some((id) => id === author.id);
}

function loopsOf(run: ConversationRun): { what: string; at: Event }[] {
  const alike = Map.groupBy(callsOf(run), ({ turn, tool, args, result }) =>
    JSON.stringify([turn.id, tool, args, result && withoutStaleNote(result.body.content)]),
  );
  return [...alike.values()].flatMap((calls) => {
    const [call] = calls;
    if (!call || calls.length < LOOP || isStopped(run, call.turn.id)) return [];
    return [
      { what: `${call.turn.agent} calls ${call.tool} ${calls.length} times for the same`, at: call.step },
    ];
  });
}

function isStopped({ events }: ConversationRun, turn: string): boolean {
  return events.some((event) => event.turn === turn && event.kind === 'guard.stopped');
}
