import type { AgentId, Event } from '../events/index.ts';
import { foldTask, newTaskBook, type TaskBook } from './task-book.ts';

/** What decides who hears a new message of a conversation: a fold of its log, the same in every process. */
export interface Participants {
  tasks: TaskBook;
  retired: Set<AgentId>;
  /** When a new message of a person last went to an agent alone, as seq. */
  asked: Map<AgentId, number>;
  /** Seqs of the last notice that an agent is set aside. */
  setAside: Map<AgentId, number>;
}

/** Id of the runtime's notice that an agent takes no more turns. */
const SET_ASIDE = /^failed:([^:]+):/;

export function newParticipants(): Participants {
  return { tasks: newTaskBook(), retired: new Set(), asked: new Map(), setAside: new Map() };
}

/** Events that it has seen change nothing. */
export function foldParticipants({ tasks, retired, asked, setAside }: Participants, event: Event): void {
  if (event.seq <= tasks.upTo) return;
  foldTask(tasks, event);
  const [only, ...others] = event.to;
  const isNew = event.kind === 'message' && event.author.kind === 'user' && event.replyTo === undefined;
  if (isNew && only && others.length === 0) asked.set(only, event.seq);
  if (event.kind === 'error' && event.author.kind === 'system') {
    const agent = SET_ASIDE.exec(event.id)?.[1];
    if (agent !== undefined) setAside.set(agent as AgentId, event.seq);
  }
  if (event.kind !== 'command' || event.body.agent === undefined) return;
  const { command, agent } = event.body;
  if (command === 'retire') retired.add(agent);
  else if (command === 'recall' || command === 'resume') retired.delete(agent);
}

/** Whether an agent hears what does not name it. */
export function isHere({ tasks, retired }: Participants, agent: AgentId): boolean {
  return !tasks.away.has(agent) && !retired.has(agent);
}
