import { type ConversationRun, callsOf, type RunUser } from './conversation-run.ts';
import {
  failed,
  stopped,
  told,
  woken,
  answered,
  handedOver,
  said,
  asked,
  askedApproval,
  called,
  delegated,
  judgeMoment,
  type Verdict,
  type Moment,
  type Often,
  type Cause,
  type CallOutcome,
  type Args,
  type What,
  type Who,
  report,
  isWhat,
  isWho,
  patternWords,
  whoWords,
} from './moments.ts';
import { checkLog, type Event, withoutStaleNote } from './troupe.ts';

/** A matcher as a function of a run, independent of any test runner. */
type Judges = {
  readonly [M in keyof RunMatchers]: (run: ConversationRun, ...args: Parameters<RunMatchers[M]>) => Verdict;
};

export const MATCHERS: Judges = {
  toHaveWoken: (run, agent, cause, often) => judgeMoment(run, woken(agent, cause), often),
  toHaveAnswered: (run, ...[agent, whom, what, often]) =>
    judgeMoment(run, answered(agent, whom, what), often),
  toHaveSaid: (run, who, what, often) => judgeMoment(run, said(who, what), often),
  toHaveBeenTold: (run, agent, what, often) => judgeMoment(run, told(agent, what), often),
  toHaveHandedOver: (run, ...[from, to, summary, often]) =>
    judgeMoment(run, handedOver(from, to, summary), often),
  toHaveDelegated: (run, ...[from, to, task, often]) => judgeMoment(run, delegated(from, to, task), often),
  toHaveCalled: (run, ...[agent, tool, args, expected]) =>
    judgeMoment(run, called(agent, tool, args, expected), expected),
  toHaveAsked: (run, ...[agent, whom, question, expected]) =>
    judgeMoment(run, asked(agent, whom, question, expected?.choices), expected),
  toHaveAskedApproval: (run, ...[agent, whom, tool, args, often]) =>
    judgeMoment(run, askedApproval(agent, whom, tool, args), often),
  toHaveBeenStopped: (run, agent, guard, often) => judgeMoment(run, stopped(agent, guard), often),
  toHaveFailed: (run, agent, why, often) => judgeMoment(run, failed(agent, why), often),
  toHaveReachedGoal: judgeGoal,
  toHaveHappenedInOrder: judgeOrder,
  toHaveTakenAtMost: judgeBounds,
  toBeSound: judgeSoundness,
};

/** The matchers of `expect(run)`. Each can be negated with `.not`. */
export interface RunMatchers<R = unknown> {
  /** An agent began a turn because somebody addressed it: `expect(run).toHaveWoken('billing', { by: 'mia' })`. */
  toHaveWoken(agent: Who, cause?: Cause, often?: Often): R;
  /** An agent answered somebody who asked it, directly or through others: `toHaveAnswered('billing', 'mia', /back to you/)`. */
  toHaveAnswered(agent: Who, whom: Who, what?: What, often?: Often): R;
  /** Somebody said this, in a message, beside calls, as a question, an answer or a task: `expect(run).not.toHaveSaid(/./, /password/)`. */
  toHaveSaid(who: Who, what: What, often?: Often): R;
  /** An agent's model was sent this, in instructions, history, or `name: description` of a tool. */
  toHaveBeenTold(agent: Who, what: What, often?: Often): R;
  /** An agent handed the conversation over. `summary`: text in any field of the summary. */
  toHaveHandedOver(from: Who, to: Who, summary?: What, often?: Often): R;
  /** An agent gave another one a task. */
  toHaveDelegated(from: Who, to: Who, task?: What, often?: Often): R;
  /** An agent called a tool with these arguments: `toHaveCalled('figures', 'read_file', { name: /csv$/ })`. An approved call counts once. */
  toHaveCalled(agent: Who, tool: What, args?: Args, expected?: CallOutcome & Often): R;
  /** An agent asked a person, or everybody: `toHaveAsked('billing', 'dana', /refund/i, { choices: ['refund nothing'] })`. */
  toHaveAsked(agent: Who, whom: Who, question?: What, expected?: AskedWith & Often): R;
  /** An agent asked a person to approve a call: `toHaveAskedApproval('editor', 'ana', 'publish', { title: /tram/ })`. */
  toHaveAskedApproval(agent: Who, whom: Who, tool: What, args?: Args, often?: Often): R;
  /** A guard stopped an agent, such as the guard against loops, or a budget. `guard`: its name. */
  toHaveBeenStopped(agent: Who, guard?: What, often?: Often): R;
  /** A turn of an agent failed. `why`: code and message. */
  toHaveFailed(agent: Who, why?: What, often?: Often): R;
  /** A simulated user has reached its goal, as it says itself. `why`: its reason. */
  toHaveReachedGoal(who: Who, why?: What): R;
  /** Each moment came after the one before: `toHaveHappenedInOrder([handedOver('triage', 'billing'), asked('billing', 'dana')])`. */
  toHaveHappenedInOrder(moments: readonly Moment[], within?: Within): R;
  /** Upper bounds of turns, calls, tokens, dollars and minutes of the whole run, without those of simulated users. */
  toHaveTakenAtMost(bounds: Bounds): R;
  /** Every event is there once and every input is answered; nobody addresses itself, no turn is open, and no loop continued. */
  toBeSound(): R;
}

/** What a question offers. */
export interface AskedWith {
  /** Choices that the question must have; it may have others. Default: any. */
  choices?: readonly string[] | undefined;
}

/** Declared here, because the published package lacks a declaration from a file of which only values are used. */
declare module 'vitest' {
  // The parameters must be those of vitest's own declaration.
  // oxlint-disable-next-line no-unused-vars
  interface Matchers<
    R extends void | Promise<void> = void | Promise<void>,
    T = unknown,
  > extends RunMatchers<R> {}
}

/** Upper bounds for a run. */
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

/** What a run took. Dollars are null if a model has no price. */
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

function judgeBounds(run: ConversationRun, bounds: Bounds): Verdict {
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

/** The part of a run in which moments are searched. */
export interface Within {
  /** Most turns that may start from the first moment to the last. Default: any number. */
  turns?: number | undefined;
}

/** Each moment is searched after the previous one. */
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

/** Number of calls in one turn with the same tool, arguments and result that count as a loop. */
const LOOP = 4;

/**
 * Problems that no conversation may have: an event twice, a gap, an input that is not answered or answered twice, an agent
 * that addresses itself, a turn that has not ended, a loop that nothing stopped.
 */
function judgeSoundness(run: ConversationRun): Verdict {
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

/** Whether a simulated user has reached its goal, as it says. `why`: its reason. */
function judgeGoal(run: ConversationRun, who: Who, why?: What): Verdict {
  const meant = run.users.filter((user) => isWho(who, user));
  const pass = meant.some(
    ({ outcome }) => outcome.kind === 'reached' && (why === undefined || isWhat(why, outcome.why)),
  );
  const because = why === undefined ? '' : `, because of ${patternWords(why)}`;
  const found = meant.length > 0 ? meant.map(endOf).join('; ') : 'no such user is simulated';
  const expected = `expected that ${whoWords(who)} ${pass ? 'has not reached' : 'has reached'} the goal${because}. ${found}`;
  return { pass, message: () => report(run, expected, []) };
}

function endOf({ name, outcome, moves }: RunUser): string {
  return `${name}, after ${moves} moves: ${outcome.kind}, ${outcome.why}`;
}
