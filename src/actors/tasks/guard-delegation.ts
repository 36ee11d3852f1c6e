import type { AgentId, GuardStoppedBody } from '../../events/index.ts';
import { openTasks } from '../../machines/task-book.ts';
import type { TurnRun } from '../turn/turn-run.ts';
import type { CallPlace } from './call-effects.ts';

export interface AskedDelegation {
  assignee: AgentId;
  task: string;
  force: boolean;
  /** Who delegated to whom, this agent last. */
  chain: readonly AgentId[];
  at: CallPlace;
}

/** What keeps this from being delegated; null if nothing does. */
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
      goOn: 'nothing has to be done: the agent was told',
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

/** In the log, earlier in this turn, or by an earlier call of this step. */
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

/** What a call gives to whom, as its model wrote it. */
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
