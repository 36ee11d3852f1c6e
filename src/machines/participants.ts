import { type AgentId, type Event, hasAuthority } from '../events/index.ts';
import { availabilityNoteOf } from './availability-fold.ts';
import { isRetired } from './membership.ts';
import { foldTask, newTaskFold, type TaskFold } from './task-fold.ts';

/** The facts that decide which agents hear a new message. A fold of the log, the same in every process. */
export interface Participants {
  tasks: TaskFold;
  /** Seq of the last new message of a person to one agent alone. */
  asked: Map<AgentId, number>;
  /** Seq of the last notice that an agent has failed. */
  failedAt: Map<AgentId, number>;
  /** The agent that the conversation was handed over to last. */
  handedTo: AgentId | null;
}

export function newParticipants(): Participants {
  return { tasks: newTaskFold(), asked: new Map(), failedAt: new Map(), handedTo: null };
}

/** An event that was folded before changes nothing. */
export function foldParticipants(participants: Participants, event: Event): void {
  const { tasks, asked, failedAt } = participants;
  if (event.seq <= tasks.upTo) return;
  foldTask(tasks, event);
  if (event.kind === 'message') {
    const [only, ...others] = event.to;
    const isNew = event.author.kind === 'user' && event.replyTo === undefined;
    if (isNew && only && others.length === 0) asked.set(only, event.seq);
  } else if (event.kind === 'handoff') {
    if (hasAuthority(event)) participants.handedTo = event.to[0] ?? null;
  } else if (event.kind === 'error') {
    const failed = availabilityNoteOf(event);
    if (failed) failedAt.set(failed.agent, event.seq);
  }
}

/** Whether an agent hears a message that does not name it. */
export function isHere({ tasks }: Pick<Participants, 'tasks'>, agent: AgentId): boolean {
  return !tasks.away.has(agent) && !isRetired(tasks, agent);
}
