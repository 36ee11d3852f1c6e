import { type Event, type TaskInfo, type Troupe, TroupeError } from '../../src/index.ts';

/** A question or a request for approval, and the conversation in which to answer it. */
export interface Wait {
  conversation: Event['conversation'];
  task: TaskInfo;
}

/** Everything that agents ask of people, in a conversation and in the threads of its delegated tasks. */
export async function openWaits(troupe: Troupe, where: string): Promise<Wait[]> {
  const conversation = where as Wait['conversation'];
  const { tasks } = await tasksOf(troupe, conversation);
  const waits: Wait[] = [];
  for (const task of tasks) {
    if (task.kind !== 'delegation') waits.push({ conversation, task });
    else if (task.thread !== undefined) waits.push(...(await openWaits(troupe, task.thread)));
  }
  return waits;
}

async function tasksOf(troupe: Troupe, conversation: string): Promise<{ tasks: TaskInfo[] }> {
  try {
    return await troupe.tasks(conversation, { open: true });
  } catch (error) {
    // A thread starts a moment after its task.
    if (error instanceof TroupeError && error.code === 'conversation_unknown') return { tasks: [] };
    throw error;
  }
}
