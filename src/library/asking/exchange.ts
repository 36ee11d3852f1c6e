import type { Wait, Work } from '../../actors/conversations/conversation-state.ts';
import type { Clock } from '../../base/clock.ts';
import { type Event, isAbout, type Note } from '../../events/index.ts';
import type { StuckLine, Troupe } from '../troupe.ts';
import type { Answers } from './answers.ts';
import { followConversation, type Frame } from './follow.ts';

export interface ExchangeParts {
  troupe: Troupe;
  clock: Clock;
  /** The work in the conversation, and the waits of tasks that were opened since the message. */
  work: () => Promise<Work>;
  /** What goes on there, and for how long, whatever counts as stuck. */
  stuck: () => Promise<readonly StuckLine[]>;
  signal: AbortSignal;
}

/** What has come of a message. */
interface Exchanged {
  /** The message and all events of its conversation since, oldest first. */
  events: Event[];
  /** What it waits for. */
  waits: Wait[];
}

/** Work in threads, and of other processes, makes no notice here: it is looked at this often, ms. */
const LOOK_MS = 250;

/**
 * What follows from a message, in the order of the logs of the conversation and of the threads of its tasks, until it is
 * answered or nobody works on it any more. Leaving it early, or the end of `signal`, stops nothing but the reading.
 */
export async function* exchange(
  sent: Event,
  answers: Answers,
  { troupe, clock, work, signal }: ExchangeParts,
): AsyncGenerator<Note, Exchanged> {
  const { conversation } = sent;
  const events = [sent];
  let last = sent.seq;

  /** Null while there is work, or events that were not read yet. */
  async function waits(): Promise<Wait[] | null> {
    const found = await work();
    // Others may still be at work on something else.
    if (answers.areComplete) return found.waits;
    if (found.isUnderWay) return null;
    const unread = await troupe.events(conversation, { after: last, limit: 1 });
    return unread.events.length > 0 ? null : found.waits;
  }

  const frames = followConversation(conversation, last, {
    troupe,
    clock,
    signal,
    lookMs: LOOK_MS,
    heartbeatMs: LOOK_MS,
    threads: true,
  });
  for await (const frame of frames) {
    if (frame.type === 'event' && frame.event.conversation === conversation) {
      answers.note(frame.event);
      events.push(frame.event);
      last = frame.event.seq;
    }
    // The conversation was deleted: nothing more comes of the message.
    if (frame.type === 'reset') break;
    if (frame.type !== 'heartbeat' && frame.type !== 'gap') yield frame;
    const left = answers.areComplete || mayBeOver(frame) ? await waits() : null;
    if (left) return { events, waits: left };
  }
  return { events, waits: [] };
}

/** Whether the work may have ended with this: a turn, or a request to people. Else it is looked at when all is quiet. */
function mayBeOver(frame: Frame): boolean {
  if (frame.type === 'heartbeat') return true;
  if (frame.type !== 'event') return false;
  const { kind } = frame.event;
  return (
    isAbout(frame.event, 'turnEnd') ||
    kind === 'question' ||
    kind === 'approval.requested' ||
    kind === 'error'
  );
}
