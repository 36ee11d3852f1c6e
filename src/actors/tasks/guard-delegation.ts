import type { AgentId, GuardStoppedBody } from '../../events/index.ts';
import { isTaskOpen, openTasks } from '../../machines/task-book.ts';
import { ownDraft, type TurnRun } from '../turn/turn-run.ts';
import type { CallPlace } from './call-effects.ts';
import { isThreadCancelled, placesOf } from './cancellation.ts';

export interface AskedDelegation {
  assignee: AgentId;
  task: string;
  force: boolean;
  /** The chain of delegators; this agent is the last. */
  chain: readonly AgentId[];
  at: CallPlace;
}

/** The guard that forbids a delegation. Null: it is allowed. */
export function guardOf(run: TurnRun, asked: AskedDelegation): GuardStoppedBody | null {
  const { live, deps, turn } = run;
  const { limits } = deps;
  const { agent } = live.address;
  const { assignee, chain } = asked;
  const message = 'a message of a person begins a new count';
  if (turn.hop >= limits.maxHops) {
    return {
      guard: 'hops',
      message: `work was passed on ${turn.hop} times since a person spoke (limits.maxHops ${limits.maxHops}): do it yourself, or say what is missing`,
      goOn: message,
    };
  }
  if (chain.length > limits.maxDepth) {
    return {
      guard: 'depth',
      message: `this is a task within ${chain.length - 1} tasks (limits.maxDepth ${limits.maxDepth}): do it yourself`,
      goOn: 'raise limits.maxDepth in the agents file, or ask for less at once',
    };
  }
  const above = chain.slice(0, -1);
  const isAgain = assignee === agent ? above.at(-1) === agent : above.includes(assignee);
  if (isAgain && !asked.force) {
    return {
      guard: 'cycle',
      message: `@${assignee} waits for this very work (${[...chain, assignee].map((each) => `@${each}`).join(' -> ')}): do it yourself, or give it to somebody else`,
      goOn: 'nothing has to be done: the agent knows',
    };
  }
  if (isOpenAlready(run, asked)) {
    return {
      guard: 'duplicate',
      message: `@${assignee} has this very task already: wait for its result`,
      goOn: 'nothing has to be done: the first of the two goes on',
    };
  }
  const open = openTasks(live.tasks, agent).length + openedSoFar(run, asked.at);
  if (open < limits.maxOpenTasks) return null;
  return {
    guard: 'fan_out',
    message: `${open} tasks are open (limits.maxOpenTasks ${limits.maxOpenTasks}): wait for their results`,
    goOn: 'raise limits.maxOpenTasks in the agents file, or wait',
  };
}

/** Whether the task is open: by the log, by this turn, or by an earlier call of this step. */
function isOpenAlready(run: TurnRun, { assignee, task, at }: AskedDelegation): boolean {
  const { live, outputs, answer } = run;
  const same = (other: { assignee: string; task: string }) =>
    other.assignee === assignee && normal(other.task) === normal(task);
  const open = openTasks(live.tasks, live.address.agent);
  if (open.some((each) => each.kind === 'delegation' && same(each.body))) return true;
  if (outputs.some((output) => output.kind === 'delegation.opened' && same(output.body))) return true;
  const calls = answer?.calls ?? [];
  const own = calls[at.index];
  return calls
    .slice(0, at.index)
    .some(({ name, args }) => name === own?.name && (sameArgs(args, own.args) || same(givenBy(args))));
}

/** Assignee and task of a call, from its arguments. */
function givenBy(args: string): { assignee: string; task: string } {
  try {
    const { to, task, question = task } = JSON.parse(args) as Record<string, unknown>;
    return { assignee: String(to).trim().replace(/^@/, ''), task: String(question) };
  } catch {
    return { assignee: '', task: '' };
  }
}

function openedSoFar({ outputs }: TurnRun, at: CallPlace): number {
  return outputs.filter(({ kind }) => kind === 'delegation.opened').length + at.index;
}

function normal(text: string): string {
  return text.replace(/\s+/g, ' ').trim().toLowerCase();
}

function sameArgs(a: string, b: string): boolean {
  return normal(a) === normal(b);
}

/** The tasks that a new task is part of, and the tree it counts in. */
interface Descent {
  root: TurnRun['live']['address']['conversation'];
  within: ReturnType<typeof placesOf>;
  tree: string;
}

const descents = new WeakMap<TurnRun, { step: number; found: Promise<Descent | null> }>();

/** Cached per step: the calls of a step run at once and have the same descent. */
export function descentOf(run: TurnRun): Promise<Descent | null> {
  const known = descents.get(run);
  if (known?.step === run.step) return known.found;
  const found = findDescent(run);
  descents.set(run, { step: run.step, found });
  return found;
}

/** Null if the task of this turn was cancelled and no person has spoken: new tasks would be useless. */
async function findDescent({ deps, live, turn }: TurnRun): Promise<Descent | null> {
  const { tenant, conversation } = live.address;
  const { thread, begun } = live.tasks;
  if (!thread) return { root: conversation, within: [], tree: begun };
  if (!(await isThreadCancelled(deps.store, tenant, live.tasks))) {
    const within = isTaskOpen(live.tasks) ? placesOf(live.tasks) : [];
    return { root: thread.opened.root, within, tree: thread.opened.tree ?? '' };
  }
  // A person's request begins a new tree.
  return turn.byPerson ? { root: conversation, within: [], tree: begun } : null;
}

/** Takes a place for a new task in its tree. Returns the guard that forbids it, or null. */
export async function guardTree(
  run: TurnRun,
  id: string,
  at: CallPlace,
  { root, tree }: Descent,
): Promise<GuardStoppedBody | null> {
  const { deps, live } = run;
  const { tenant } = live.address;
  const waiting = (await deps.pending?.of(tenant)) ?? 0;
  const most = deps.pending?.limit ?? Infinity;
  if (waiting >= most) {
    return {
      guard: 'pending',
      message: `too many agents of this tenant wait for their turn (limits.pendingPerTenant ${most}): give nothing to others now; do it yourself, or say that it has to wait`,
      goOn: 'ask again when fewer wait, or raise limits.pendingPerTenant in the agents file',
    };
  }
  const { maxTreeTasks, maxTreeOpen } = deps.limits;
  const isEnded = (task: string) => (live.tasks.tasks.get(task)?.end ?? null) !== null;
  const opening = ownDraft(run, openingPart(at)).id;
  const taken = await deps.trees.take({ tenant, root, tree }, { id, opening, isEnded });
  if (taken.ok) return null;
  if (taken.of === 'made') {
    return {
      guard: 'tree',
      message: `${taken.made} tasks were made of one message (limits.maxTreeTasks ${maxTreeTasks}): do it yourself, or answer with what you have`,
      goOn: `a message of a person in ${root} begins a new count; or raise limits.maxTreeTasks in the agents file, or cancel tasks`,
    };
  }
  return {
    guard: 'tree',
    message: `${taken.open} tasks of one message are open (limits.maxTreeOpen ${maxTreeOpen}): wait for results, do it yourself, or answer with what you have`,
    goOn: `wait until some have ended, or cancel some in ${root}; or raise limits.maxTreeOpen in the agents file`,
  };
}

/** Part of the id of the opening event in the owner's log. */
export function openingPart({ step, index }: CallPlace): string {
  return `opened:${step}.${index}`;
}
