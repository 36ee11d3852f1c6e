import type { Answer } from '../../asking/answer.ts';
import type { ChatChange } from '../../asking/chat-change.ts';
import { openChat } from '../../asking/chat.ts';
import { wholeExchange } from '../../asking/whole-exchange.ts';
import type { TaskUpdate } from '../../doors/a2a/protocol.ts';
import { TaskView } from '../../doors/a2a/task-view.ts';
import type { Event } from '../../events/index.ts';
import { type Desk, namesIn } from './read-task.ts';

/** `task`: how the task stands, before anything else. */
export type Followed = { type: 'task'; view: TaskView } | { type: 'update'; update: TaskUpdate };

/**
 * Follows a task until it has ended, or waits for people, or nobody works on it.
 *  F1  What the log has at the beginning is in the task, and what comes later in the updates: every word once.
 */
export async function* followTask(
  { troupe }: Pick<Desk, 'troupe'>,
  sent: Event,
  signal: AbortSignal,
): AsyncGenerator<Followed, TaskView> {
  const { conversation, seq } = sent;
  const { head } = await troupe.events(conversation, { limit: 1 });
  const view = new TaskView(sent, namesIn(troupe));
  const chat = openChat(troupe, conversation);
  /** An exchange tells what comes after its event, and an answer to a question is such an event. */
  async function* changes(place: { seq: number }, ends: AbortSignal): AsyncGenerator<ChatChange, Answer> {
    const { events } = await troupe.events(conversation, { after: place.seq - 1, limit: 1 });
    if (place.seq > seq) for (const event of events) yield { type: 'event', event };
    return yield* chat.follow(place.seq, ends);
  }
  let isTold = head <= seq;
  if (isTold) yield { type: 'task', view };
  const going = wholeExchange({ troupe, changes }, { conversation, seq }, signal);
  try {
    for (let next = await going.next(); !next.done; next = await going.next()) {
      const change = next.value;
      const updates = view.take(change);
      if (isTold) for (const update of updates) yield { type: 'update', update };
      else if (isAt(change, conversation, head) || view.isOver) {
        isTold = true;
        yield { type: 'task', view };
      }
      if (view.isOver) return view;
    }
    if (!isTold) yield { type: 'task', view };
    return view;
  } finally {
    await going.return(undefined as never);
  }
}

function isAt(change: { type: string; event?: Event }, conversation: string, head: number): boolean {
  const { event } = change;
  return event !== undefined && event.conversation === conversation && event.seq >= head;
}
