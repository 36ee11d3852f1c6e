import { TroupeError } from '../../base/errors.ts';
import type { Troupe } from '../../library/troupe.ts';
import type { StatusUpdate } from './protocol.ts';
import { findTask, readTask } from './read-task.ts';
import { taskId } from './task-id.ts';

/** A task, by the message that began it. Id and time tell it from one of a later conversation with the same id. */
interface TaskMark {
  agent: string;
  conversation: string;
  seq: number;
  event: string;
  at: number;
}

/** How a task stands, as a stream would tell it. Null: it was deleted. */
export async function taskStand(
  troupe: Troupe,
  { agent, conversation, seq, event, at }: TaskMark,
): Promise<{ payload: { statusUpdate: StatusUpdate }; isOver: boolean } | null> {
  try {
    const id = taskId({ conversation, seq });
    const sent = await findTask({ troupe, agent }, id);
    if (sent.id !== event || sent.at !== at) return null;
    const { status, isOver } = await readTask({ troupe }, sent);
    return { payload: { statusUpdate: { taskId: id, contextId: conversation, status } }, isOver };
  } catch (error) {
    if (!(error instanceof TroupeError)) throw error;
    if (error.code === 'task_unknown' || error.code === 'conversation_unknown') return null;
    throw error;
  }
}
