import { ConversationId } from '../troupe.ts';
import { a2aError } from './problem.ts';

/** A message in the log, and what comes of it. Clients know it as `CONVERSATION~SEQ`. */
export interface TaskPlace {
  conversation: ConversationId;
  /** Seq of the message. */
  seq: number;
}

/** Ids of conversations have no `~`. */
const FORM = /^([^~]{1,128})~(\d{1,15})$/;

export function taskId({ conversation, seq }: { conversation: string; seq: number }): string {
  return `${conversation}~${seq}`;
}

/** Throws TASK_NOT_FOUND: any other text is the id of no task. */
export function parseTaskId(text: string): TaskPlace {
  const [, name, digits] = FORM.exec(text) ?? [];
  const conversation = ConversationId.safeParse(name);
  const seq = Number(digits);
  if (conversation.success && seq > 0) return { conversation: conversation.data, seq };
  throw unknownTask(text);
}

export function unknownTask(id: string): Error {
  return a2aError('TASK_NOT_FOUND', `there is no task "${id.slice(0, 200).toWellFormed()}"`);
}
