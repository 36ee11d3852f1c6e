import { agentAuthor } from '../../../events/index.ts';
import type { RequestOf } from '../../../tools/tool.ts';
import type { TurnRun } from '../../turn/turn-run.ts';
import { type CarriedOut, effectsOf, refused } from '../call-effects.ts';
import { abortTask } from '../end-task.ts';
import { findTask } from '../open-delegation.ts';

/** An agent ends what it has given to another. If the result is faster, that counts. */
export function cancelTask(run: TurnRun, request: RequestOf<'cancelTask'>): CarriedOut {
  const task = findTask(run, request.task);
  if (typeof task === 'string') return refused(task);
  if (task.end) return refused(`${task.id} has ended already (${task.end.outcome})`);
  const why = request.reason.trim() || 'its delegator called it off';
  const posts = abortTask(run.live.address, task, agentAuthor(run.runtime.profile), why);
  return { outcome: 'done', text: `${task.id} is called off`, effects: effectsOf({ posts }) };
}
