import {
  ConversationId,
  type Event,
  type IntegrationTroupe,
  type Troupe,
  TroupeError,
  chatChanges,
  storedEvents,
} from '../troupe.ts';
import { unknownTask, parseTaskId, type TaskPlace } from './task-id.ts';
import type { TaskProgress } from './task-progress.ts';
import { TaskView, type Absence } from './task-view.ts';

/** The part of a troupe that tells how tasks stand. */
export type TaskLog = Pick<IntegrationTroupe, 'agents' | 'events' | 'actors'>;

/** An agent of a troupe, which has tasks. */
export interface Desk<T = Troupe> {
  troupe: T;
  /** Id of the agent. */
  agent: string;
}

/** Deepest nesting of threads that is read. */
const MAX_DEPTH = 16;

export function namesIn({ agents }: Pick<TaskLog, 'agents'>): (agent: string) => string {
  return (agent) => agents.find(({ id }) => id === agent)?.name ?? agent;
}

/** Whether a message began a task of the agent. */
export function isTaskOf({ kind, author, to }: Event, agent: string): boolean {
  return kind === 'message' && author.kind === 'user' && to.some((each) => each === agent);
}

/** The message that began a task. Throws TASK_NOT_FOUND, also for one of another agent or beyond the caller's grant. */
export async function findTask({ troupe, agent }: Desk<TaskLog>, id: string): Promise<Event> {
  const { conversation, seq } = parseTaskId(id);
  const event = await eventAt(troupe, { conversation, seq });
  if (!event || !isTaskOf(event, agent)) throw unknownTask(id);
  return event;
}

async function eventAt(troupe: TaskLog, { conversation, seq }: TaskPlace): Promise<Event | undefined> {
  try {
    const { events } = await troupe.events(conversation, { after: seq - 1, limit: 1 });
    return events.find((event) => event.seq === seq);
  } catch (error) {
    if (error instanceof TroupeError && error.code === 'conversation_unknown') return undefined;
    throw error;
  }
}

/** The task as the log has it now: without the words that are being written. */
export async function readTask({ troupe }: Pick<Desk<TaskLog>, 'troupe'>, sent: Event): Promise<TaskView> {
  const view = new TaskView(sent, namesIn(troupe));
  const changesOf = chatChanges();
  for await (const event of storedEvents(troupe, sent.conversation, sent.seq)) {
    for (const change of changesOf({ type: 'event', event })) view.take(change);
    if (view.isOver) return view;
  }
  await readThreads(troupe, view.progress);
  view.hold(await absentWorkers(troupe, view.progress));
  return view;
}

/** Adds what people are asked in the threads of open delegations. */
export async function readThreads(
  troupe: TaskLog,
  progress: Pick<TaskProgress, 'threads' | 'note'>,
): Promise<void> {
  const read = new Set<string>();
  for (let depth = 0; depth < MAX_DEPTH; depth++) {
    const next = progress.threads.filter((thread) => !read.has(thread));
    if (next.length === 0) return;
    for (const thread of next) {
      read.add(thread);
      for await (const event of storedEvents(troupe, ConversationId.parse(thread), 0)) progress.note(event);
    }
  }
}

const ABSENT = new Set(['paused', 'retired', 'failed']);

/** Those who are to work on a task and take no turns. Empty if somebody else works on it. */
export async function absentWorkers(
  troupe: TaskLog,
  { workers, state }: Pick<TaskProgress, 'workers' | 'state'>,
): Promise<Absence[]> {
  if (state !== 'TASK_STATE_WORKING') return [];
  const statuses = new Map<string, Awaited<ReturnType<TaskLog['actors']>>>();
  const absent = new Map<string, Absence>();
  for (const { agent, conversation } of workers) {
    const actors = statuses.get(conversation) ?? (await troupe.actors(conversation));
    statuses.set(conversation, actors);
    const status = actors.find((actor) => actor.agent === agent)?.status;
    // It waits for another of these.
    if (status === 'waiting') continue;
    if (status === undefined || !ABSENT.has(status)) return [];
    absent.set(agent, { agent, status });
  }
  return [...absent.values()];
}
