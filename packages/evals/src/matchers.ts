import type { ConversationRun } from './conversation-run.ts';
import { judgeGoal } from './judge-goal.ts';
import { failed, stopped, told, woken } from './moments-of-turns.ts';
import { answered, handedOver, said } from './moments-of-words.ts';
import { asked, askedApproval, called, delegated } from './moments-of-work.ts';
import type { RunMatchers } from './run-matchers.ts';
import { judgeMoment, type Verdict } from './verdict.ts';
import { judgeBounds, judgeOrder, judgeSoundness } from './whole-run.ts';

/** A matcher as a function of a run, free of any test runner. */
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
