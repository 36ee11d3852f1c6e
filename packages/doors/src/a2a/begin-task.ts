import { createHash } from 'node:crypto';
import { a2aError } from './problem.ts';
import type { GivenMessage } from './requests.ts';
import { commandIn, saidIn } from './said.ts';
import { taskId } from './task-id.ts';
import { type Caller, beginExchange, giveCommand, newConversation } from '../http.ts';
import type { Event } from '../troupe.ts';
import { findTask, readTask } from './read-task.ts';

/**
 * Says what a client's message says: to the agent, or to the task that it names, which waits for it. Returns the message
 * that began the task. The id of the message is its idempotency key, and with a message that names no context it gives
 * the context, so that a repeated one begins no second task. Other words with the same id are another message: some clients
 * number theirs anew with each start.
 */
export async function beginTask(caller: Caller, agent: string, message: GivenMessage): Promise<Event> {
  const { troupe, principal } = caller;
  if (message.taskId) return goOn(caller, agent, message);
  const conversation =
    message.contextId ||
    newConversation(
      principal,
      `a2a-${digest(principal.id, agent, message.messageId, JSON.stringify(message.parts))}`,
    );
  const id = eventId(message.messageId);
  const said = { conversation, channel: 'a2a', id, ...saidIn(message), to: [agent] };
  const { seq } = await beginExchange(caller, said);
  return findTask({ troupe, agent }, taskId({ conversation, seq }));
}

async function goOn(caller: Caller, agent: string, message: GivenMessage): Promise<Event> {
  const { troupe } = caller;
  const sent = await findTask({ troupe, agent }, message.taskId!);
  if (message.contextId && message.contextId !== sent.conversation)
    throw a2aError('INVALID_PARAMS', `the task is of the context "${sent.conversation}"`);
  const { progress, isOver } = await readTask({ troupe }, sent);
  if (isOver) throw a2aError('UNSUPPORTED_OPERATION', 'the task has ended: begin another in its context');
  const waits = progress.asked.map(({ conversation, ...asked }) => ({
    conversation,
    task:
      asked.kind === 'question'
        ? ({ id: asked.body.question, kind: 'question' } as const)
        : ({ id: asked.body.request, kind: 'approval' } as const),
  }));
  if (waits.length === 0)
    throw a2aError('UNSUPPORTED_OPERATION', 'the task waits for no message: begin another in its context');
  await giveCommand(caller, commandIn(message, waits));
  return sent;
}

/** The id under which a client's message is stored: its own, if that may be one. */
function eventId(messageId: string): string {
  const isEventId = /^[A-Za-z0-9][A-Za-z0-9._@-]{0,255}$/.test(messageId);
  return isEventId ? messageId : `a2a-${digest(messageId)}`;
}

function digest(...parts: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 32);
}
