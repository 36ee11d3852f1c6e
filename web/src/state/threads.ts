import type { ConversationId } from '../../../src/events/index.ts';
import type { TaskView, TurnView } from '../../../src/library/projection/model.ts';
import { shown } from './live.ts';

/** A task that an agent works on in a conversation of its own. */
export type Delegation = TaskView & { thread: ConversationId };

/** The delegations of this conversation. If it is a thread, its own task is not among them. */
export function delegations(): Delegation[] {
  const projection = shown.value;
  return (projection?.tasks ?? []).filter(
    (task): task is Delegation => task.thread !== null && task.thread !== projection?.conversation,
  );
}

/** The tasks that were given in a turn. */
export function threadsOf({ agent, from, to }: Pick<TurnView, 'agent' | 'from' | 'to'>): Delegation[] {
  return delegations().filter(
    ({ owner, seq }) => owner === agent && seq >= from && seq <= (to ?? Number.MAX_SAFE_INTEGER),
  );
}

/** The task that a call has opened: the call's result begins with the task's id. */
export function threadOfCall(result: string | null): Delegation | null {
  const id = /^\S{1,64}/.exec(result ?? '')?.[0];
  return delegations().find((task) => task.id === id) ?? null;
}
