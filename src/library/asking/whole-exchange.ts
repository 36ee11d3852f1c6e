import type { ConversationId, Event } from '../../events/index.ts';
import type { Troupe, Answer } from '../troupe.ts';
import type { ChatChange } from './chat-change.ts';

/** A message or a command in the log. */
interface Place {
  conversation: ConversationId;
  seq: number;
}

interface ExchangeHost {
  troupe: Pick<Troupe, 'tasks'>;
  /** What has come and comes of a message or a command. */
  changes: (place: Place, signal: AbortSignal) => AsyncGenerator<ChatChange, Answer>;
}

/** What came of a message in the end. */
export type Concluded = Pick<Answer, 'outcome' | 'replies' | 'waits' | 'failures'>;

/**
 * What comes of a message, and of what people have said since to questions and requests that came of it, whoever has said
 * it. The answer to a message alone ends where people are asked.
 *  W1  Each event of the conversation is followed once: an end of a task that lies before the last event was seen already.
 */
export async function* wholeExchange(
  { troupe, changes }: ExchangeHost,
  { conversation, seq }: Place,
  signal: AbortSignal,
): AsyncGenerator<ChatChange, Concluded> {
  const answers: Answer[] = [];
  const asked = new Set<string>();
  let at = seq;
  for (;;) {
    const answer = yield* changes({ conversation, seq: at }, signal);
    answers.push(answer);
    for (const event of answer.events) for (const id of askedBy(event)) asked.add(id);
    const { tasks } = asked.size > 0 ? await troupe.tasks(conversation) : { tasks: [] };
    const own = tasks.filter(({ id }) => asked.has(id));
    const seen = answer.events.at(-1)?.seq ?? at;
    const next = own.flatMap(({ end }) => (end && end.seq > seen ? [end.seq] : []));
    if (next.length === 0) {
      const open = own.flatMap((task) => (task.end ? [] : [{ conversation, task }]));
      return conclude(answers, open);
    }
    at = Math.min(...next);
  }
}

function askedBy(event: Event): string[] {
  if (event.kind === 'question') return [event.body.question];
  return event.kind === 'approval.requested' ? [event.body.request] : [];
}

function conclude(answers: readonly Answer[], open: Answer['waits']): Concluded {
  const last = answers.at(-1);
  const others = (last?.waits ?? []).filter(({ task }) => !open.some((each) => each.task.id === task.id));
  const waits = [...open, ...others];
  const outcome = waits.length > 0 ? 'waiting' : last?.outcome === 'failed' ? 'failed' : 'answered';
  return {
    outcome,
    waits,
    replies: answers.flatMap(({ replies }) => replies),
    failures: answers.flatMap(({ failures }) => failures),
  };
}
