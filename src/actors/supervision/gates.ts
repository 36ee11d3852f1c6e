import { openTasks } from '../../machines/task-book.ts';
import { isSuperseded, openedBy } from '../tasks/complete-task.ts';
import type { TurnRun } from '../turn/turn-run.ts';
import { silentText, todoText } from './correction-text.ts';
import { listOf, openItems } from './open-todos.ts';

/**
 * What keeps a turn from ending with its present answer, in words for the agent; null if nothing does. Decided by facts
 * alone (the log as pinned, what the turn has done, the settings), never by what the answer says: so whoever goes on with
 * the turn decides the same.
 */
export function gateOf(run: TurnRun): string | null {
  const reasons = [todoGate(run), silentGate(run)].filter((reason) => reason !== null);
  return reasons.length > 0 ? reasons.join('\n\n') : null;
}

/** The list has something to be done, and nobody else is waited for. */
function todoGate(run: TurnRun): string | null {
  const { live, runtime, outputs } = run;
  if (!runtime.tools.has('todo') || isWaiting(run)) return null;
  const open = openItems(listOf(live.tasks, live.address.agent, outputs));
  return open.length > 0 ? todoText(open) : null;
}

/** What another result has made needless is called off with this turn, and wakes nobody. */
function isWaiting(run: TurnRun): boolean {
  const { tasks, address } = run.live;
  const isNeedless = isSuperseded(run);
  return openedBy(run) > 0 || openTasks(tasks, address.agent).some((task) => !isNeedless(task));
}

/** An answer without words, which nobody has said is meant so. Replies that are data are never without. */
function silentGate({ runtime, answer, silent }: TurnRun): string | null {
  if (!runtime.supervision.silent || silent || !answer) return null;
  return answer.text.trim() === '' ? silentText(runtime.tools.has('no_response')) : null;
}
