import { chatChanges } from '../../library/asking/chat.ts';
import { storedEvents } from '../../library/asking/follow.ts';
import { unknownTask } from './task-id.ts';
import { parseTaskId, type TaskPlace } from './task-id.ts';
import type { TaskProgress } from './task-progress.ts';
import { TaskView } from './task-view.ts';
import { TroupeError } from '../../base/errors.ts';
import { ConversationId, type Event } from '../../events/index.ts';
import type { Troupe } from '../../library/troupe.ts';
import { absentWorkers } from './absent-workers.ts';

/** An agent of a troupe, which has tasks. */
export interface Desk {
  troupe: Troupe;
  /** Id of the agent. */
  agent: string;
}

/** Deepest nesting of threads that is read. */
const MAX_DEPTH = 16;

export function namesIn({ agents }: Troupe): (agent: string) => string {
  return (agent) => agents.find(({ id }) => id === agent)?.name ?? agent;
}

/** Whether a message began a task of the agent. */
export function isTaskOf({ kind, author, to }: Event, agent: string): boolean {
  return kind === 'message' && author.kind === 'user' && to.some((each) => each === agent);
}

/** The message that began a task. Throws TASK_NOT_FOUND, also for one of another agent or beyond the caller's grant. */
export async function findTask({ troupe, agent }: Desk, id: string): Promise<Event> {
  const { conversation, seq } = parseTaskId(id);
  const event = await eventAt(troupe, { conversation, seq });
  if (!event || !isTaskOf(event, agent)) throw unknownTask(id);
  return event;
}

async function eventAt(troupe: Troupe, { conversation, seq }: TaskPlace): Promise<Event | undefined> {
  try {
    const { events } = await troupe.events(conversation, { after: seq - 1, limit: 1 });
    return events.find((event) => event.seq === seq);
  } catch (error) {
    if (error instanceof TroupeError && error.code === 'conversation_unknown') return undefined;
    throw error;
  }
}

/** The task as the log has it now: without the words that are being written. */
export async function readTask({ troupe }: Pick<Desk, 'troupe'>, sent: Event): Promise<TaskView> {
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
  troupe: Troupe,
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
