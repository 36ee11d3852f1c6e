import { isAbout } from '../events/aspects.ts';
import type { ApprovalRequestedBody, DelegationOpenedBody, Event, QuestionBody } from '../events/index.ts';

/** Openings and ends of tasks. Separate from the task fold, because the inspector needs them in browsers. */
export type TaskOpening =
  | { kind: 'delegation'; body: DelegationOpenedBody }
  | { kind: 'question'; body: QuestionBody }
  | { kind: 'approval'; body: ApprovalRequestedBody };

export interface TaskEnd {
  /** Place in the log, from 1. */
  seq: number;
  /** How it ended. */
  outcome: 'done' | 'failed' | 'answered' | 'expired' | 'cancelled' | 'approved' | 'denied';
}

/** The task that an event opens; null in the task's own thread, where its owner does not wait. */
export function openingOf(event: Event): (TaskOpening & { id: string }) | null {
  if (!isAbout(event, 'taskOpening')) return null;
  switch (event.kind) {
    case 'delegation.opened':
      if (event.body.thread === event.conversation) return null;
      return { kind: 'delegation', body: event.body, id: event.body.delegation };
    case 'question':
      return { kind: 'question', body: event.body, id: event.body.question };
    case 'approval.requested':
      return { kind: 'approval', body: event.body, id: event.body.request };
  }
}

export function endOf(event: Event): { id: string; outcome: TaskEnd['outcome'] } | null {
  if (!isAbout(event, 'taskEnd')) return null;
  switch (event.kind) {
    case 'delegation.ended':
      return { id: event.body.delegation, outcome: event.body.outcome };
    case 'question.answered':
      return { id: event.body.question, outcome: event.body.outcome };
    case 'approval.decided':
      return { id: event.body.request, outcome: event.body.outcome };
  }
}
