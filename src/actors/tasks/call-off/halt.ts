import { type Event, type Halt, isTaskEnd } from '../../../events/index.ts';
import { isTaskOpen, type TaskBook } from '../../../machines/task-book.ts';
import type { EngineDeps } from '../../engine/engine-deps.ts';

/** Why no model is to be asked about these inputs; null if one is. */
export function haltOf(
  { limits }: Pick<EngineDeps, 'limits'>,
  tasks: TaskBook,
  inputs: readonly Event[],
  calledOff: boolean,
): Halt | null {
  const isOver = tasks.thread !== null && !isTaskOpen(tasks);
  // Also where it was a person who called it off.
  // Whoever speaks after it takes it back.
  if (tasks.off) return { kind: 'task aborted' };
  if (calledOff && !inputs.some(isOfPeople)) return { kind: 'task aborted' };
  if (isOver && inputs.every((event) => isOfTasks(event))) return { kind: 'task aborted' };
  if (inputs.some((event) => event.author.kind === 'user')) return null;
  if (tasks.agentTurns < limits.maxAgentTurns) return null;
  return {
    kind: 'guard',
    guard: 'agent_turns',
    message: `agents took ${tasks.agentTurns} turns here since a person spoke (limits.maxAgentTurns ${limits.maxAgentTurns})`,
    goOn: 'a message of a person starts the count anew',
  };
}

/** What people say in a thread is heard, whatever became of its task. */
export function isOfPeople(event: Event): boolean {
  return (event.author.kind === 'user' || event.kind === 'command') && !isOfTasks(event);
}

/** Nothing that anybody said: in a thread that is over nobody reads what an agent would make of it. */
function isOfTasks(event: Event): boolean {
  return event.kind === 'delegation.opened' || isTaskEnd(event);
}
