import {
  type AgentId,
  agentAuthor,
  type DelegationOpenedBody,
  SYSTEM_AUTHOR,
  type Timer,
} from '../../events/index.ts';
import type { RequestOf } from '../../tools/tool.ts';
import { resolveAgent } from '../conversations/address-message.ts';
import { ownDraft, type TurnRun } from '../turn/turn-run.ts';
import {
  type CallPlace,
  type AppliedRequest,
  effectsOf,
  refused,
  stopped,
  stoppedForGood,
} from './call-effects.ts';
import { abortTask, openedId, opening, taskIdOf, threadOf } from './task-events.ts';
import { descentOf, guardOf, guardTree, openingPart } from './guard-delegation.ts';
import { toTroupeError } from '../../base/errors.ts';

/**
 * Delegates a task: recorded in this log, opened in a thread, ended at its deadline at the latest. The thread is a separate
 * conversation, so the assignee sees its task only, and one agent can work on several tasks at once.
 */
export async function delegate(
  run: TurnRun,
  request: RequestOf<'delegate'>,
  at: CallPlace,
): Promise<AppliedRequest> {
  const { turn, live, deps } = run;
  const { agent, conversation } = live.address;
  const found = assigneeOf(run, request.to);
  if ('refusal' in found) return refused(found.refusal);
  const { assignee } = found;
  const { thread: own } = live.tasks;
  const chain = [...(own?.opened.chain ?? []), agent];
  const stop = guardOf(run, { ...request, assignee, chain, at });
  if (stop) return stopped(run, at, stop);
  const descent = await descentOf(run);
  if (!descent) return refused(TASK_CANCELLED);
  const { root, within, tree } = descent;
  const delegation = taskIdOf('d', turn.id, at);
  const full = await guardTree(run, delegation, at, descent);
  if (full) return stoppedForGood(run, at, full);
  return open(run, at, request.wait, {
    delegation,
    how: request.how,
    delegator: agent,
    assignee,
    task: request.task,
    home: conversation,
    thread: threadOf(root, delegation),
    root,
    group: `${turn.id}/${request.join}`,
    join: request.join,
    chain,
    within,
    tree,
    deadline: deadlineOf(run, request.deadlineMs ?? deps.limits.taskMs),
  });
}

/** Writes to the assignee of an earlier task: a message while the task is open, else the next task in the same thread. */
export async function followUp(
  run: TurnRun,
  request: RequestOf<'followUp'>,
  at: CallPlace,
): Promise<AppliedRequest> {
  const { turn, live, deps, runtime } = run;
  const { agent } = live.address;
  const found = findTask(run, request.task);
  if (typeof found === 'string') return refused(found);
  const { body, end } = found;
  if (end === null) {
    const id = openedId(taskIdOf('d', turn.id, at));
    const message = { kind: 'message' as const, body: { content: request.text } };
    const draft = {
      id,
      author: agentAuthor(runtime.profile),
      to: [body.assignee],
      hop: turn.hop + 1,
      ...message,
    };
    return {
      outcome: 'done',
      text: `told @${body.assignee}, who is still at it; the result of ${body.delegation} comes as before`,
      effects: effectsOf({ posts: [{ conversation: body.thread, draft }], ends: request.wait }),
    };
  }
  const chain = body.chain;
  const stop = guardOf(run, { assignee: body.assignee, task: request.text, force: true, chain, at });
  if (stop) return stopped(run, at, stop);
  const descent = await descentOf(run);
  if (!descent) return refused(TASK_CANCELLED);
  const delegation = taskIdOf('d', turn.id, at);
  const full = await guardTree(run, delegation, at, descent);
  if (full) return stoppedForGood(run, at, full);
  return open(run, at, request.wait, {
    ...body,
    ...descent,
    delegation,
    how: 'followUp',
    delegator: agent,
    task: request.text,
    group: `${turn.id}/${request.join}`,
    join: request.join,
    deadline: deadlineOf(run, request.deadlineMs ?? deps.limits.taskMs),
  });
}

const TASK_CANCELLED = 'what you do this for was called off: give nothing on';

function open(run: TurnRun, at: CallPlace, wait: boolean, body: DelegationOpenedBody): AppliedRequest {
  const { live, turn, runtime } = run;
  const { conversation, agent } = live.address;
  const { delegation, assignee, thread, deadline = 0 } = body;
  const kind = 'delegation.opened' as const;
  const task = opening({ kind: 'delegation', body, id: delegation }, agent);
  const timer: Timer = {
    at: deadline,
    task: delegation,
    posts: abortTask({ conversation }, task, SYSTEM_AUTHOR, 'its deadline has passed'),
  };
  const opened = {
    id: openedId(delegation),
    author: agentAuthor(runtime.profile),
    to: [assignee],
    hop: turn.hop + 1,
  };
  return {
    outcome: 'done',
    text: `${delegation} is given to @${assignee}. ${wait ? 'You are woken with the result.' : 'Its result comes when it is done.'}`,
    effects: effectsOf({
      events: [{ ...ownDraft(run, openingPart(at)), kind, body }],
      posts: [{ conversation: thread, draft: { ...opened, kind, body } }],
      timers: [timer],
      ends: wait,
    }),
  };
}

/** The deadline of a new task, at most that of the open task it is part of; of several, the latest. */
export function deadlineOf({ deps, live }: TurnRun, ms: number): number {
  const own = (live.tasks.thread?.open ?? []).map(({ deadline }) => deadline ?? Number.MAX_SAFE_INTEGER);
  return Math.min(
    deps.clock.now() + Math.ceil(ms),
    own.length > 0 ? Math.max(...own) : Number.MAX_SAFE_INTEGER,
  );
}

function assigneeOf(run: TurnRun, name: string): { assignee: AgentId } | { refusal: string } {
  const { live, deps } = run;
  if (live.tasks.directions.archived)
    return { refusal: 'this conversation is closed: nothing is delegated in it' };
  try {
    const assignee = resolveAgent(deps.agents, name.trim());
    const away = live.tasks.away.get(assignee);
    if (!away) return { assignee };
    return { refusal: `@${assignee} ${away.blocked ? 'is blocked here' : 'has left'}: choose another` };
  } catch (error) {
    return { refusal: toTroupeError(error).message };
  }
}

type Delegated = Extract<ReturnType<TurnRun['live']['tasks']['tasks']['get']>, { kind: 'delegation' }>;

/** Finds an own task by its id or a unique prefix. Returns the refusal if there is none. */
export function findTask({ live }: TurnRun, name: string): Delegated | string {
  const own = [...live.tasks.tasks.values()].filter(
    (task): task is Delegated =>
      task.kind === 'delegation' && task.owner === live.address.agent && !task.imported,
  );
  const wanted = name.trim();
  const matches = wanted === '' ? [] : own.filter(({ id }) => id.startsWith(wanted));
  const [match] = matches;
  if (match && matches.length === 1) return match;
  const known = (matches.length > 1 ? matches : own).slice(-10).map(({ id }) => id);
  if (matches.length > 1) return `"${name}" may be ${known.join(' or ')}: give more of the id`;
  return `you have given no task "${name}". Known: ${known.join(', ') || 'none'}.`;
}
