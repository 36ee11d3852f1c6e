import type { ConversationRun } from './conversation-run.ts';
import { eventData, eventWords, isSpoken } from './event-words.ts';
import type { Moment } from './moment.ts';
import { isWhat, isWho, patternWords, type What, type Who } from './pattern.ts';
import { lessIsBetter, type Score } from './score.ts';
import { judgeOrder, takenBy } from './whole-run.ts';

/** Whether each moment happened, one after the other: `reachedGoal(called('shipping', 'refund', undefined, { outcome: 'done' }))`. */
export function reachedGoal(...moments: readonly Moment[]): Score {
  return function isReached(run) {
    const { pass, message } = judgeOrder(run, moments);
    return { value: pass, why: pass ? '' : (message().split('\n', 1)[0] ?? '') };
  };
}

/** Whether the simulated users, or this one, have reached their goals, as they say. No value: there was none. */
export function userReachedGoal(who: Who = /./): Score {
  return function isReached({ users }) {
    const meant = users.filter((user) => isWho(who, user));
    const others = meant.filter(({ outcome }) => outcome.kind !== 'reached');
    const why = others
      .map(({ name, outcome: { kind, why: reason } }) => `${name}: ${kind}, ${reason}`)
      .join('; ');
    if (meant.length === 0) return { value: null, why: 'no such user is simulated' };
    return { value: others.length === 0, why };
  };
}

/** The share of facts that agents have said, 0 to 1. `by`: this agent. Default: any agent. */
export function hasFacts(facts: readonly What[], { by = /./ }: { by?: Who } = {}): Score {
  return function isTold({ events }) {
    const words = events.filter(
      (event) => isSpoken(event) && event.author.kind === 'agent' && isWho(by, event.author),
    );
    const missing = facts.filter(
      (fact) => !words.some((event) => isWhat(fact, eventWords(event), eventData(event))),
    );
    const value = facts.length === 0 ? 1 : (facts.length - missing.length) / facts.length;
    return { value, why: missing.length === 0 ? '' : `not said: ${missing.map(patternWords).join(', ')}` };
  };
}

/** What holds of every conversation. */
export interface Policy {
  /** Moments that may not happen. */
  never?: readonly Moment[] | undefined;
  /** Pairs: the first may only happen after the second. */
  onlyAfter?: readonly (readonly [what: Moment, after: Moment])[] | undefined;
}

/** Whether a policy was kept: `keptPolicy({ onlyAfter: [[called('shipping', 'refund'), decided('dana', 'approved')]] })`. */
export function keptPolicy({ never = [], onlyAfter = [] }: Policy): Score {
  return function isKept(run) {
    const done = never.filter((moment) => moment.find(run).length > 0).map(({ words }) => words);
    const early = onlyAfter
      .filter(([what, after]) => isBefore(run, what, after))
      .map(([what, after]) => `${what.words} without this before: ${after.words}`);
    return { value: done.length + early.length === 0, why: [...done, ...early].join('; ') };
  };
}

function isBefore(run: ConversationRun, what: Moment, after: Moment): boolean {
  const [first] = what.find(run);
  if (!first) return false;
  const [needed] = after.find(run);
  return !needed || run.events.indexOf(needed) > run.events.indexOf(first);
}

/** US dollars of all model calls of the company. No value if a model has no price. */
export const cost: Score = lessIsBetter((run) => {
  const { dollars } = takenBy(run);
  return { value: dollars, why: dollars === null ? 'a model has no price' : '' };
});

/** Tokens of all model calls of the company, in and out. */
export const tokens: Score = lessIsBetter((run) => takenBy(run).tokens);

/** Turns of all agents. */
export const turns: Score = lessIsBetter((run) => takenBy(run).turns);
