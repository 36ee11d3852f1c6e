import { type AgentId, type Event, hasAuthority } from '../events/index.ts';
import { availabilityNoteOf, foldAvailability } from './availability-fold.ts';
import { foldTask, newTaskBook, type TaskBook } from './task-book.ts';

/** The facts that decide which agents hear a new message. A fold of the log, the same in every process. */
export interface Participants {
  tasks: TaskBook;
  retired: Set<AgentId>;
  /** Seq of the last new message of a person to one agent alone. */
  asked: Map<AgentId, number>;
  /** Seq of the last notice that an agent has failed. */
  failedAt: Map<AgentId, number>;
  /** The agent that the conversation was handed over to last. */
  handedTo: AgentId | null;
}

export function newParticipants(): Participants {
  return { tasks: newTaskBook(), retired: new Set(), asked: new Map(), failedAt: new Map(), handedTo: null };
}

/** An event that was folded before changes nothing. */
export function foldParticipants(participants: Participants, event: Event): void {
  const { tasks, retired, asked, failedAt } = participants;
  if (event.seq <= tasks.upTo) return;
  foldTask(tasks, event);
  if (event.kind === 'handoff' && hasAuthority(event)) participants.handedTo = event.to[0] ?? null;
  const [only, ...others] = event.to;
  const isNew = event.kind === 'message' && event.author.kind === 'user' && event.replyTo === undefined;
  if (isNew && only && others.length === 0) asked.set(only, event.seq);
  const note = availabilityNoteOf(event);
  if (!note) return;
  const { agent } = note;
  if (event.kind === 'error') failedAt.set(agent, event.seq);
  // Only retired agents are stored: all other states accept `RETIRE` alike.
  const state = foldAvailability(retired.has(agent) ? 'retired' : 'available', note);
  if (state === 'retired') retired.add(agent);
  else retired.delete(agent);
}

/** Whether an agent hears a message that does not name it. */
export function isHere({ tasks, retired }: Participants, agent: AgentId): boolean {
  return !tasks.away.has(agent) && !retired.has(agent);
}
