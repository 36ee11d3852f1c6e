import type { Moment, Often } from './moment.ts';
import type { Cause } from './moments-of-turns.ts';
import type { CallOutcome } from './moments-of-work.ts';
import type { Args, What, Who } from './pattern.ts';
import type { Bounds, Within } from './whole-run.ts';

/** The matchers of `expect(run)`. Each has its counterpart with `.not`. */
export interface RunMatchers<R = unknown> {
  /** An agent began a turn because somebody addressed it: `expect(run).toHaveWoken('billing', { by: 'mia' })`. */
  toHaveWoken(agent: Who, cause?: Cause, often?: Often): R;
  /** An agent answered somebody who asked it, directly or through others: `toHaveAnswered('billing', 'mia', /back to you/)`. */
  toHaveAnswered(agent: Who, whom: Who, what?: What, often?: Often): R;
  /** Somebody said it, to whomever: `expect(run).not.toHaveSaid(/./, /password/)`. */
  toHaveSaid(who: Who, what: What, often?: Often): R;
  /** The model of an agent was sent it: instructions, history, descriptions of tools. */
  toHaveBeenTold(agent: Who, what: What, often?: Often): R;
  /** An agent handed the conversation over. `summary`: words of any of its fields. */
  toHaveHandedOver(from: Who, to: Who, summary?: What, often?: Often): R;
  /** An agent gave another one a task. */
  toHaveDelegated(from: Who, to: Who, task?: What, often?: Often): R;
  /** An agent called a tool with these arguments: `toHaveCalled('figures', 'read_file', { name: /csv$/ })`. */
  toHaveCalled(agent: Who, tool: What, args?: Args, expected?: CallOutcome & Often): R;
  /** An agent asked a person: `toHaveAsked('billing', 'dana', /refund/i, { choices: ['refund nothing'] })`. */
  toHaveAsked(agent: Who, whom: Who, question?: What, expected?: AskedWith & Often): R;
  /** An agent asked a person to approve a call: `toHaveAskedApproval('editor', 'ana', 'publish', { title: /tram/ })`. */
  toHaveAskedApproval(agent: Who, whom: Who, tool: What, args?: Args, often?: Often): R;
  /** A guard stopped an agent: a loop, a chain, a budget. `guard`: its name. */
  toHaveBeenStopped(agent: Who, guard?: What, often?: Often): R;
  /** A turn of an agent failed. `why`: code and message. */
  toHaveFailed(agent: Who, why?: What, often?: Often): R;
  /** A simulated user has reached its goal, as it says itself. `why`: how it knows. */
  toHaveReachedGoal(who: Who, why?: What): R;
  /** Each moment is behind the one before: `toHaveHappenedInOrder([handedOver('triage', 'billing'), asked('billing', 'dana')])`. */
  toHaveHappenedInOrder(moments: readonly Moment[], within?: Within): R;
  /** Turns, model calls, tool calls, tokens, dollars and minutes of the whole run, without those of simulated users. */
  toHaveTakenAtMost(bounds: Bounds): R;
  /** No event twice, none without an answer, nobody talks to itself, no turn is open, no loop went on. */
  toBeSound(): R;
}

/** What a question offers. */
export interface AskedWith {
  /** Choices that it has, others beside them. Default: any. */
  choices?: readonly string[] | undefined;
}

/** Here, because a declaration in a file of which only values are used is in no package. */
declare module 'vitest' {
  // The parameters have to be those of vitest's own declaration.
  // oxlint-disable-next-line no-unused-vars
  interface Matchers<
    R extends void | Promise<void> = void | Promise<void>,
    T = unknown,
  > extends RunMatchers<R> {}
}
