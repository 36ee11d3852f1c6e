import { stripVTControlCharacters } from 'node:util';
import { TroupeError } from './troupe.ts';
import type { ConversationRun } from './conversation-run.ts';
import type { PlayOptions } from './play-conversation.ts';
import type { Claim } from './scenario.ts';
import type { RunScore } from './scorecard.ts';

/** What a score says of a run. Null: it has no value here, such as the cost of a model without a price. */
export type ScoreValue = number | boolean | null;

/** A value with its reason. */
export interface ExplainedValue {
  /** The value. */
  value: ScoreValue;
  /** Why, in one sentence. Default: nothing. */
  why?: string | undefined;
  /** What asking a model for it took. Default: no model was asked. */
  judged?: Judged | undefined;
}

/** What the calls of a judge took. */
export interface Judged {
  /** Model calls. */
  calls: number;
  /** Tokens, in and out. */
  tokens: number;
  /** US dollars. Null: the model has no price. */
  dollars: number | null;
}

/** What a score may use beside the run. */
export interface ScoreContext {
  /** Number of the run, from 1. */
  seed: number;
  /** Options of `createTroupe` of the run: a judge records and replays as they say. */
  troupe: PlayOptions['troupe'];
}

/**
 * A function of a run. What it throws is a failure of the score, which no comparison takes for a value; `config_invalid` ends
 * all runs.
 */
export interface Score {
  (
    run: ConversationRun,
    context: ScoreContext,
  ): ScoreValue | ExplainedValue | Promise<ScoreValue | ExplainedValue>;
  /** Which values are better. Default `more`. */
  readonly better?: 'more' | 'less' | undefined;
}

/** A score of which small values are the good ones, such as a cost. */
export function lessIsBetter(score: Score): Score {
  const less: Score = (run, context) => score(run, context);
  return Object.assign(less, { better: 'less' as const });
}

/** A claim as a score: whether it holds. */
export function scoreOfClaim(claim: Claim): Score {
  return async function holds(run) {
    try {
      await claim(run);
      return true;
    } catch (error) {
      return { value: false, why: whyOf(error) };
    }
  };
}

/** Takes a score of a run, and what its judge took. */
export async function takeScore(
  name: string,
  score: Score,
  run: ConversationRun,
  context: ScoreContext,
): Promise<{ taken: RunScore; judged: Judged | null }> {
  try {
    const given = await score(run, context);
    const { value, why = '', judged = null } = isExplained(given) ? given : { value: given };
    if (value === null) return { taken: { score: name, kind: 'none', why }, judged };
    if (typeof value !== 'boolean' && !Number.isFinite(value))
      throw new TypeError(`the value is ${String(value)}, and has to be a number or a boolean`);
    return { taken: { score: name, kind: 'scored', value, why }, judged };
  } catch (error) {
    // Not of this run, but of how the score was set up: all further runs would be in vain.
    if (error instanceof TroupeError && error.code === 'config_invalid') throw error;
    return { taken: { score: name, kind: 'failed', why: whyOf(error) }, judged: null };
  }
}

function isExplained(given: ScoreValue | ExplainedValue): given is ExplainedValue {
  return typeof given === 'object' && given !== null;
}

const MOST_WHY = 500;

/** The first paragraph of an error: what follows is a part of the log. */
function whyOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  const [first = ''] = stripVTControlCharacters(message).split('\n\n', 1);
  return first.slice(0, MOST_WHY).toWellFormed();
}
