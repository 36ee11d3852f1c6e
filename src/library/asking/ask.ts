import type { Wait } from '../../actors/conversations/conversation-state.ts';
import { TroupeError } from '../../base/errors.ts';
import {
  addUsage,
  type DelegationOpenedBody,
  type Event,
  type EventOf,
  NO_USAGE,
  type Note,
  type Usage,
} from '../../events/index.ts';
import type { Answer, StuckLine } from '../troupe.ts';
import { type Answers, awaitAnswers } from './answers.ts';
import { exchange, type ExchangeParts } from './exchange.ts';
import { storedEvents } from './follow.ts';

/** The cost of one turn of an agent, US dollars. Null: its model has no price. */
export type CostOf = (agent: string, usage: Usage) => number | null;

/**
 * Follows a message to its end. Yields what happens, and returns the answer. Throws `aborted` if `signal` ends first.
 */
export async function* ask(sent: Event, parts: ExchangeParts, costOf: CostOf): AsyncGenerator<Note, Answer> {
  const { troupe, signal } = parts;
  const answers = awaitAnswers(sent);
  const { events, waits } = yield* exchange(sent, answers, parts);
  if (signal.aborted) {
    const causes = causesOf(answers, await withUnread(troupe, events), await stuckWords(parts));
    const message = ['the wait for an answer was ended', atWork(answers), ...causes].join('; ');
    throw new TroupeError('aborted', message);
  }
  const ends = [...answers.ends, ...(await endsBelow(troupe, answers.delegations))];
  return answerOf(answers, { events, waits, ends, costOf });
}

function atWork({ missing }: Answers): string {
  return missing.length === 0
    ? 'nobody is to answer'
    : `at work: ${missing.map((agent) => `@${agent}`).join(', ')}`;
}

/** Most causes that an error names. */
const MOST_CAUSES = 5;

/** What the agents at work wait for, with the words of the last failed call. */
function causesOf({ missing }: Answers, events: readonly Event[], stuck: readonly StuckLine[]): string[] {
  const silent = missing.filter((agent) => !stuck.some((line) => line.agent === agent));
  const lines = [...stuck, ...silent.map((agent) => ({ agent, words: '' }))];
  const causes = lines.flatMap(({ agent, words }) => {
    const error = events.findLast(({ kind, author }) => kind === 'error' && author.id === agent);
    const isTold = missing.includes(agent) && error?.kind === 'error';
    const failure = isTold ? `its last call failed: ${error.body.message}` : '';
    if (words === '') return failure === '' ? [] : [`@${agent}: ${failure}`];
    return [`@${agent} ${words}${failure === '' ? '' : ` (${failure})`}`];
  });
  return causes.slice(0, MOST_CAUSES);
}

/** The last call may have failed since the log was read. */
async function withUnread(troupe: ExchangeParts['troupe'], events: readonly Event[]): Promise<Event[]> {
  const { conversation, seq } = events.at(-1)!;
  // The end of the wait is what the caller is to hear of.
  const unread = await troupe.events(conversation, { after: seq }).catch(() => null);
  return [...events, ...(unread?.events ?? [])];
}

/** What goes on in the conversation and its threads. None if that cannot be read, as while the troupe closes. */
async function stuckWords({ stuck }: ExchangeParts): Promise<readonly StuckLine[]> {
  try {
    return await stuck();
  } catch {
    return []; // the end of the wait is what the caller is to hear of
  }
}

/** The ends of the turns of tasks, and of tasks below them. Their threads may have had other tasks before. */
async function endsBelow(
  troupe: ExchangeParts['troupe'],
  given: readonly DelegationOpenedBody[],
): Promise<Event[]> {
  const found: Event[] = [];
  const own = new Set(given.map(({ delegation }) => delegation));
  const threads = new Set(given.map(({ thread }) => thread));
  // The loop comes to those that it adds.
  for (const thread of threads) {
    let isOwn = false;
    for await (const event of storedEvents(troupe, thread, 0)) {
      if (event.kind === 'delegation.opened' && event.body.thread === thread)
        isOwn ||= own.has(event.body.delegation);
      else if (event.kind === 'delegation.opened' && isOwn) {
        own.add(event.body.delegation);
        threads.add(event.body.thread);
      }
      if (event.kind === 'turn.done' && isOwn) found.push(event);
    }
  }
  return found;
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
