import type { Event, TroupeInput } from './troupe.ts';
import type { ConversationRun } from './conversation-run.ts';

/** A message that a schedule of the company sent. */
export interface ScheduledMessage {
  /** Name of the schedule. */
  schedule: string;
  /** The time of its schedule, ms since the epoch. It may have been sent later. */
  due: number;
}

const MS_PER_MINUTE = 60_000;
/** Largest time of a Date, ms. */
const LAST_TIME = 8.64e15;

/** Null: no schedule sent it. */
export function scheduledMessage({ id, kind, author }: Event): ScheduledMessage | null {
  const [of, schedule = '', minute = ''] = id.split(':');
  if (kind !== 'message' || author.kind !== 'system' || of !== 'schedule') return null;
  const due = Number(minute) * MS_PER_MINUTE;
  return Number.isSafeInteger(due) && due <= LAST_TIME ? { schedule, due } : null;
}

/** When the clock of the test begins, if something depends on the time of day. Null: nothing does. */
export function startOf({ events }: ConversationRun): number | null {
  const [first] = events;
  const dues = events.flatMap((event) => scheduledMessage(event)?.due ?? []);
  if (!first || (dues.length === 0 && !events.some(remindsAtTime))) return null;
  // A schedule sends nothing for the time at which the clock begins.
  return dues.reduce((start, due) => Math.min(start, due - MS_PER_MINUTE), first.at);
}

/** Minutes that pass before an event. `comesByItself`: it has not come before they have passed. */
export type Waits = (event: Event, comesByItself: boolean) => number;

/** Counts from the start of the clock, if the run has one, and from the last event otherwise. */
export function waitsOf(run: ConversationRun): Waits {
  const start = startOf(run);
  return start === null ? waitsFromLast(run) : waitsFromStart(run, start);
}

function waitsFromLast({ events }: ConversationRun): Waits {
  let since = events[0]?.at ?? 0;
  return ({ at }, comesByItself) => {
    const minutes = comesByItself ? Math.ceil((at - since) / MS_PER_MINUTE) : 0;
    since = at;
    return Math.max(0, minutes);
  };
}

function waitsFromStart({ events }: ConversationRun, start: number): Waits {
  const nextDues = new Map<Event, number>();
  let next = Infinity;
  for (const event of events.toReversed()) {
    nextDues.set(event, next);
    next = scheduledMessage(event)?.due ?? next;
  }
  let passed = 0;
  return (event, comesByItself) => {
    const until = scheduledMessage(event)?.due ?? event.at;
    // What was sent late comes on time in the test: whoever spoke before it speaks before its time.
    const before = Math.min(until, (nextDues.get(event) ?? Infinity) - 1);
    const target = comesByItself
      ? Math.ceil((until - start) / MS_PER_MINUTE)
      : Math.floor((before - start) / MS_PER_MINUTE);
    const minutes = Math.max(0, target - passed);
    passed += minutes;
    return minutes;
  };
}

/** An agent asked to be reminded at a time, not in some minutes. */
function remindsAtTime({ kind, body }: Event): boolean {
  return kind === 'step' && body.calls.some(({ name, args }) => name === 'remind' && args.includes('"at"'));
}

/** A schedule that sent a message and that the company does not have for this conversation. */
export function unknownSchedule(
  { events, conversation }: ConversationRun,
  { schedules = [] }: Pick<TroupeInput, 'schedules'>,
): string | undefined {
  const known = new Set(schedules.flatMap((each) => (each.conversation === conversation ? each.name : [])));
  const sent = events.flatMap((event) => scheduledMessage(event)?.schedule ?? []);
  return sent.find((name) => !known.has(name));
}

/** What schedules sent in one run and not in the other. Null: they sent the same. */
export function differenceOfSchedules(recorded: ConversationRun, played: ConversationRun): string | null {
  const then = messagesOf(recorded);
  const now = messagesOf(played);
  const missing = then.find((message) => !now.includes(message));
  if (missing) return `${missing} then, and does not in the test`;
  const more = now.find((message) => !then.includes(message));
  return more ? `${more} in the test, and did not then` : null;
}

function messagesOf({ events }: ConversationRun): string[] {
  return events.flatMap((event) => {
    const message = scheduledMessage(event);
    if (!message) return [];
    return [`the schedule ${message.schedule} sends its message of ${new Date(message.due).toISOString()}`];
  });
}
