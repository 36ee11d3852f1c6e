import { callsOf, type RunCall } from './conversation-run.ts';
import { type Moment, momentOf } from './moment.ts';
import { areArgs, type Args, isWhat, isWho, patternWords, type What, type Who, whoWords } from './pattern.ts';

/** What a call came to. */
export interface CallOutcome {
  /** Its result, as the model was shown it. Default: any, or none. */
  result?: What | undefined;
  /** How it ended; `waiting`: for an approval. Default: any. */
  outcome?: 'done' | 'failed' | 'lost' | 'waiting' | undefined;
}

/** An agent called a tool. A call that a person has to approve is made once, and its result comes later. */
export function called(agent: Who, tool: What, args?: Args, expected: CallOutcome = {}): Moment {
  const parts = [
    `${whoWords(agent)} calls ${typeof tool === 'string' ? tool : patternWords(tool)}`,
    args === undefined ? '' : patternWords(args),
    expected.outcome === undefined ? '' : `and it is ${expected.outcome}`,
    expected.result === undefined ? '' : `with the result ${patternWords(expected.result)}`,
  ];
  return {
    words: parts.filter((part) => part !== '').join(' '),
    find: (run) =>
      callsOf(run).flatMap((call) =>
        isCallBy(call, agent) &&
        isTool(tool, call) &&
        (args === undefined || areArgs(args, call.args)) &&
        hasOutcome(call, expected)
          ? [call.result ?? call.step]
          : [],
      ),
    near: (run) => {
      const calls = callsOf(run).filter((call) => isTool(tool, call));
      const close = calls.length > 0 ? calls : callsOf(run).filter((call) => isCallBy(call, agent));
      return close.map(({ step, result }) => result ?? step);
    },
  };
}

/** An agent gave a task to another one. */
export function delegated(from: Who, to: Who, task?: What): Moment {
  const words = task === undefined ? '' : `: ${patternWords(task)}`;
  return momentOf(
    `${whoWords(from)} delegates to ${whoWords(to)}${words}`,
    ({ kind, author, conversation, body }) =>
      kind === 'delegation.opened' &&
      // The thread has a copy.
      body.thread !== conversation &&
      isWho(from, author) &&
      isWho(to, { id: body.assignee, name: body.assignee }) &&
      (task === undefined || isWhat(task, body.task)),
    ({ kind, conversation, body }) => kind === 'delegation.opened' && body.thread !== conversation,
  );
}

/** An agent asked people. `whom`: somebody who may answer. */
export function asked(agent: Who, whom: Who, question?: What, choices?: readonly string[]): Moment {
  const words = question === undefined ? '' : ` ${patternWords(question)}`;
  const offered = choices === undefined ? '' : ` with the choices ${patternWords(choices)}`;
  return momentOf(
    `${whoWords(agent)} asks ${whoWords(whom)}${words}${offered}`,
    (event) =>
      event.kind === 'question' &&
      isWho(agent, event.author) &&
      isAmong(whom, event.body.by) &&
      (question === undefined || isWhat(question, event.body.text)) &&
      (choices === undefined || choices.every((choice) => event.body.choices?.includes(choice))),
    ({ kind }) => kind === 'question',
    ({ kind, author }) => kind === 'step' && isWho(agent, author),
  );
}

/** An agent asked for the approval of a call. `whom`: somebody who may decide. */
export function askedApproval(agent: Who, whom: Who, tool: What, args?: Args): Moment {
  const name = typeof tool === 'string' ? tool : patternWords(tool);
  const words = args === undefined ? '' : ` ${patternWords(args)}`;
  return momentOf(
    `${whoWords(agent)} asks ${whoWords(whom)} to approve ${name}${words}`,
    (event) =>
      event.kind === 'approval.requested' &&
      isWho(agent, event.author) &&
      isAmong(whom, event.body.by) &&
      isName(tool, event.body.tool) &&
      (args === undefined || areArgs(args, event.body.args)),
    ({ kind }) => kind === 'approval.requested',
    ({ kind, author }) => kind === 'step' && isWho(agent, author),
  );
}

/** A person decided on a call: `approved`, `denied`, `expired` or `cancelled`. */
export function decided(who: Who, outcome: What): Moment {
  return momentOf(
    `${whoWords(who)} decides ${patternWords(outcome)}`,
    ({ kind, author, body }) =>
      kind === 'approval.decided' && isWho(who, author) && isWhat(outcome, body.outcome),
    ({ kind }) => kind === 'approval.decided',
    ({ kind }) => kind === 'approval.requested',
  );
}

function isCallBy({ step }: RunCall, agent: Who): boolean {
  return isWho(agent, step.author);
}

function isTool(tool: What, call: RunCall): boolean {
  return isName(tool, call.tool);
}

/** A name is whole: `read` is not `read_file`. */
function isName(pattern: What, name: string): boolean {
  return typeof pattern === 'string' ? pattern === name : isWhat(pattern, name);
}

function hasOutcome({ result }: RunCall, { outcome, result: what }: CallOutcome): boolean {
  if (outcome !== undefined && result?.body.outcome !== outcome) return false;
  return what === undefined || (result !== null && isWhat(what, result.body.content));
}

/** Nobody in particular is everybody. */
function isAmong(whom: Who, by: readonly string[]): boolean {
  return by.length === 0 || by.some((id) => isWho(whom, { id, name: id }));
}
