import type { Wait } from '../actors/conversations/conversation-work.ts';
import { TroupeError } from '../errors.ts';
import { addUsage, type Event, type EventOf, NO_USAGE, type Usage } from '../events/index.ts';
import type { Answer } from './answer.ts';
import { type Answers, awaitAnswers } from './answers.ts';
import { exchange, type ExchangeParts } from './exchange.ts';
import type { Note } from './follow.ts';

/** The cost of one turn of an agent, US dollars. Null: its model has no price. */
export type CostOf = (agent: string, usage: Usage) => number | null;

/**
 * Follows a message to its end. Yields what happens, and returns the answer. Throws `aborted` if `signal` ends first.
 */
export async function* ask(sent: Event, parts: ExchangeParts, costOf: CostOf): AsyncGenerator<Note, Answer> {
  const { troupe, signal } = parts;
  const answers = awaitAnswers(sent);
  const { events, waits } = yield* exchange(sent, answers, parts);
  if (signal.aborted)
    throw new TroupeError('aborted', `the wait for an answer was ended; ${atWork(answers)}`);
  const ends = [...answers.ends, ...(await endsBelow(troupe, answers.threads))];
  return answerOf(answers, { events, waits, ends, costOf });
}

function atWork({ missing }: Answers): string {
  return missing.length === 0
    ? 'nobody is to answer'
    : `at work: ${missing.map((agent) => `@${agent}`).join(', ')}`;
}

/** The ends of all turns in threads, and in threads of theirs. */
async function endsBelow(troupe: ExchangeParts['troupe'], threads: readonly string[]): Promise<Event[]> {
  const found: Event[] = [];
  const seen = new Set<string>();
  const open = [...threads];
  for (let thread = open.pop(); thread !== undefined; thread = open.pop()) {
    if (seen.has(thread)) continue;
    seen.add(thread);
    for (let after = 0; ;) {
      const { events, head } = await pageOf(troupe, thread, after);
      for (const event of events) {
        if (event.kind === 'turn.done') found.push(event);
        if (event.kind === 'delegation.opened') open.push(event.body.thread);
      }
      after = events.at(-1)?.seq ?? head;
      if (after >= head) break;
    }
  }
  return found;
}

/** A thread whose task was called off before it began has no events. */
async function pageOf(troupe: ExchangeParts['troupe'], thread: string, after: number) {
  try {
    return await troupe.events(thread, { after });
  } catch (error) {
    if (error instanceof TroupeError && error.code === 'conversation_unknown') return { events: [], head: 0 };
    throw error;
  }
}

function answerOf(
  answers: Answers,
  { events, waits, ends, costOf }: { events: Event[]; waits: Wait[]; ends: readonly Event[]; costOf: CostOf },
): Answer {
  // Others may have asked meanwhile, and got replies.
  const turns = new Set(answers.ends.map(({ turn }) => turn));
  const messages = answers.replies.filter(
    (event): event is EventOf<'message'> => event.kind === 'message' && turns.has(event.turn),
  );
  const last = messages.at(-1)?.body;
  let usage = NO_USAGE;
  let cost: number | null = 0;
  for (const { kind, author, body } of ends) {
    if (kind !== 'turn.done') continue;
    usage = addUsage(usage, body.usage);
    const own = costOf(author.id, body.usage);
    cost = cost === null || own === null ? null : cost + own;
  }
  return {
    text: last?.content ?? '',
    ...(last && 'data' in last && last.data !== undefined && { data: last.data }),
    outcome: answers.failures.length > 0 ? 'failed' : waits.length > 0 ? 'waiting' : 'answered',
    replies: messages,
    events,
    waits,
    failures: answers.failures,
    usage,
    cost,
  };
}
