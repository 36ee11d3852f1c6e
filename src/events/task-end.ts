import type { Event, EventKind } from './event.ts';

const TASK_ENDS: readonly EventKind[] = [
  'delegation.completed',
  'delegation.aborted',
  'question.answered',
  'approval.decided',
];

/** Whether an event ends a task: what its owner is given when it has waited for enough. */
export function isTaskEnd({ kind }: Pick<Event, 'kind'>): boolean {
  return TASK_ENDS.includes(kind);
}
