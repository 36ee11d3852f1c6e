import type { TaskPlace, TenantId } from '../../../events/index.ts';
import type { TaskBook } from '../../../machines/task-book.ts';
import type { Store } from '../../../store/store.ts';
import { endId } from '../end-task.ts';
import { isNotedOff } from '../tree-note.ts';

/** The task of a thread and those that it is part of, the outermost first; empty where nothing was given. */
export function placesOf({ thread }: Pick<TaskBook, 'thread'>): TaskPlace[] {
  if (!thread) return [];
  const { delegation, home, within = [] } = thread.opened;
  return [...within, { delegation, home }];
}

/**
 * Whether what a thread works on was called off, here or anywhere above it. Asked of the log that each end stands in,
 * which is what was acknowledged: so it holds at once and for good, whatever became of the events that tell the threads.
 *  C1  One that is part of a task that has ended, however, is over: who ends well waits for nothing.
 *  C2  The last task of a thread is over here only where it was called off: people may ask more about one that is done.
 *  C3  Where all that came of one message was called off together, a note beside the log of that conversation says so.
 *  C4  Where the conversation that it all began in is gone, so is what came of it.
 */
export async function isCalledOff(
  store: Pick<Store, 'readById' | 'head' | 'get'>,
  tenant: TenantId,
  { thread }: Pick<TaskBook, 'thread'>,
): Promise<boolean> {
  if (!thread) return false;
  const { root, tree } = thread.opened;
  const [head, isNoted, ...ends] = await Promise.all([
    store.head({ tenant, conversation: root }),
    tree === undefined ? false : isNotedOff(store, tenant, root, tree),
    ...placesOf({ thread }).map(({ delegation, home }) =>
      store.readById({ tenant, conversation: home }, endId(delegation)),
    ),
  ]);
  const own = ends.pop() ?? null;
  return head === 0 || isNoted || ends.some((end) => end !== null) || own?.kind === 'delegation.aborted';
}
