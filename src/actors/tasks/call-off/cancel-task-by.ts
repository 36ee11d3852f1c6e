import { TroupeError } from '../../../errors.ts';
import type { Author, CommandOf, Event } from '../../../events/index.ts';
import type { ConversationKey } from '../../../store/store.ts';
import { ALL_TASKS, callOffAll, type CallOffDeps } from './call-off-all.ts';
import { abortTask } from '../end-task.ts';
import { endByPerson, taskForPerson } from '../people/person-task.ts';
import { sendPosts } from '../send-posts.ts';

/**
 * A person ends what an agent waits for. Whoever works on it is broken off by the event in the thread; what it has given
 * to others in turn, its own halted turn calls off.
 */
export async function cancelTaskBy(
  deps: CallOffDeps,
  log: ConversationKey,
  { task: named, reason }: Pick<CommandOf<'cancelTask'>, 'task' | 'reason'>,
  by: Author,
): Promise<Event> {
  const why = reason?.trim() || `${by.name} called it off`;
  if (named.trim() === ALL_TASKS) return callOffAll(deps, log, why, by);
  const attempt = { log, by, command: 'cancelTask', task: named, said: why } as const;
  const found = await taskForPerson(deps, ['delegation', 'question', 'approval'], attempt);
  const { task } = found;
  const [first, ...rest] = abortTask(found.log, task, by, why);
  if (!first) throw new TroupeError('internal', `nothing ends ${task.id}`);
  const { draft } = first;
  const end = await endByPerson(deps, { ...attempt, log: found.log, task: task.id }, draft, (event) =>
    isSame(event, draft),
  );
  await sendPosts(deps, log.tenant, rest);
  return end;
}

function isSame(event: Pick<Event, 'kind' | 'body'>, draft: Pick<Event, 'kind' | 'body'>): boolean {
  return event.kind === draft.kind && JSON.stringify(event.body) === JSON.stringify(draft.body);
}
