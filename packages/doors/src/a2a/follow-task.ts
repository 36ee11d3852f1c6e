import {
  type Answer,
  type ChatChange,
  type Clock,
  type Event,
  type Troupe,
  followConversation,
  openChat,
  wholeExchange,
} from '../troupe.ts';
import type { TaskState, TaskUpdate } from './protocol.ts';
import { TaskView } from './task-view.ts';
import { absentWorkers, type Desk, namesIn } from './read-task.ts';

/** `task`: how the task stands, before anything else. */
export type Followed = { type: 'task'; view: TaskView } | { type: 'update'; update: TaskUpdate };

interface FollowParts {
  clock: Clock;
  signal: AbortSignal;
  /** The states in which it ends. */
  until: (state: TaskState) => boolean;
}

/**
 * Follows a task until it has come to its end, or to where people are asked, as `until` says. While nobody works on it, because its agents are
 * paused, it is followed on.
 *  F1  What the log has at the beginning is in the task, and what comes later in the updates: every word once.
 */
export async function* followTask(
  { troupe }: Pick<Desk, 'troupe'>,
  sent: Event,
  parts: FollowParts,
): AsyncGenerator<Followed, TaskView> {
  const { conversation, seq } = sent;
  const { signal, until } = parts;
  const { head } = await troupe.events(conversation, { limit: 1 });
  const view = new TaskView(sent, namesIn(troupe));
  const changesOf = changesFrom(troupe, sent);
  /** Seq of the last event, by conversation. */
  const seen = new Map<string, number>([[conversation, seq]]);
  let isTold = head <= seq;
  if (isTold) yield { type: 'task', view };
  for (;;) {
    const going = wholeExchange({ troupe, changes: changesOf }, { conversation, seq }, signal);
    try {
      for (let next = await going.next(); !next.done; next = await going.next()) {
        const change = next.value;
        if (change.type === 'event') seen.set(change.event.conversation, change.event.seq);
        const updates = view.take(change);
        if (isTold) for (const update of updates) yield { type: 'update', update };
        else if (isAt(change, conversation, head) || view.isOver) {
          isTold = true;
          yield { type: 'task', view };
        }
        if (view.isOver) return view;
      }
    } finally {
      await going.return(undefined as never);
    }
    const held = view.hold(await absentWorkers(troupe, view.progress));
    if (!isTold) yield { type: 'task', view };
    else for (const update of held) yield { type: 'update', update };
    isTold = true;
    if (until(view.progress.state)) return view;
    if (!(await somethingCame(troupe, { sent, seen, ...parts }))) return view;
  }
}

/** What comes of the message, and of answers to questions. What an earlier call has given is left out. */
function changesFrom(troupe: Troupe, { conversation, seq }: Event) {
  const chat = openChat(troupe, conversation);
  /** An exchange tells what comes after its event, and an answer to a question is such an event. */
  return async function* changes(
    place: { seq: number },
    ends: AbortSignal,
  ): AsyncGenerator<ChatChange, Answer> {
    const { events } = await troupe.events(conversation, { after: place.seq - 1, limit: 1 });
    if (place.seq > seq) for (const event of events) yield { type: 'event', event };
    return yield* chat.follow(place.seq, ends);
  };
}

interface Waiting extends Pick<FollowParts, 'clock' | 'signal'> {
  sent: Event;
  seen: ReadonlyMap<string, number>;
}

/** Resolves when the conversation, or a thread of the task, has an event that was not seen. False: `signal` has ended. */
async function somethingCame(troupe: Troupe, { sent, seen, clock, signal }: Waiting): Promise<boolean> {
  const options = { troupe, clock, signal, threads: true };
  for await (const frame of followConversation(sent.conversation, sent.seq, options)) {
    if (frame.type === 'event' && frame.event.seq > (seen.get(frame.event.conversation) ?? 0)) return true;
  }
  return false;
}

function isAt(change: { type: string; event?: Event }, conversation: string, head: number): boolean {
  const { event } = change;
  return event !== undefined && event.conversation === conversation && event.seq >= head;
}
