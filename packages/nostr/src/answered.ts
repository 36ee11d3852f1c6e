import { type Event, eventOf, type IntegrationTroupe } from './troupe.ts';

/** Events read at once, going back. */
const PAGE = 200;
/** How far back a person is looked for whose words an agent may have meant. */
const MAX_BACK = 1_000;
/** Turns that follow from each other: of a hand-over of a hand-over. */
const MAX_TURNS = 16;

export type LogReader = Pick<IntegrationTroupe, 'events'>;

/**
 * Messages that an agent's words may be an answer to, the likeliest first: what they say they reply to, what their turn
 * was about, newest first, and what people said last. What led to the turn of another agent leads to that one's inputs.
 */
export async function* answered(log: LogReader, said: Event): AsyncGenerator<Event, void> {
  yield* repliedTo(log, said);
  yield* behind(log, said, 0);
  const person = await lastBefore(
    log,
    said,
    ({ kind, author }) => kind === 'message' && author.kind === 'user',
  );
  if (person) yield person;
}

async function* repliedTo(log: LogReader, event: Event): AsyncGenerator<Event, void> {
  const { replyTo } = event;
  if (replyTo === undefined) return;
  const found = await lastBefore(log, event, ({ id }) => id === replyTo);
  if (found) yield found;
}

/** What the turn that an event is of was about. */
async function* behind(log: LogReader, event: Event, depth: number): AsyncGenerator<Event, void> {
  const { turn, conversation } = event;
  if (turn === undefined || depth >= MAX_TURNS) return;
  const found = await lastBefore(log, event, (each) => each.kind === 'turn.started' && each.turn === turn);
  const started = found && eventOf(found, 'turn.started');
  for (const seq of started?.body.inputs.toReversed() ?? []) {
    const { events } = await log.events(conversation, { after: seq - 1, limit: 1 });
    const [input] = events;
    if (input?.kind === 'message') {
      yield input;
      // What an operator has passed on stands behind it.
      yield* repliedTo(log, input);
    } else if (input) yield* behind(log, await openingOf(log, input), depth + 1);
  }
}

/** The end of a task leads to where it was opened. */
async function openingOf(log: LogReader, event: Event): Promise<Event> {
  if (event.kind !== 'delegation.completed' && event.kind !== 'delegation.aborted') return event;
  const { delegation } = event.body;
  const opened = await lastBefore(
    log,
    event,
    (each) => eventOf(each, 'delegation.opened')?.body.delegation === delegation,
  );
  return opened ?? event;
}

async function lastBefore(
  log: LogReader,
  { conversation, seq }: Event,
  isIt: (event: Event) => boolean,
): Promise<Event | null> {
  for (let upTo = seq - 1; upTo > 0 && seq - upTo < MAX_BACK; upTo -= PAGE) {
    const after = Math.max(0, upTo - PAGE);
    let found: Event | undefined;
    // Of large events a page has few.
    for (let at = after; at < upTo;) {
      const { events } = await log.events(conversation, { after: at, limit: upTo - at });
      found = events.findLast(isIt) ?? found;
      at = events.at(-1)?.seq ?? upTo;
    }
    if (found) return found;
  }
  return null;
}
