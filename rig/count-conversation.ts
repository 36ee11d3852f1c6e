import { type Event, parseTurnId } from '../src/events/index.ts';
import type { ConversationRun } from './check-conversation.ts';

/** Figures of one conversation. */
export interface Counts {
  events: number;
  /** (addressed event, addressee) pairs. */
  triggers: number;
  unanswered: number;
  turns: number;
  failed: number;
  aborted: number;
  calls: number;
  lost: number;
  /** From each acknowledgement of a message to each ending that covers it, ms. */
  answerMs: number[];
}

export function noCounts(): Counts {
  return {
    events: 0,
    triggers: 0,
    unanswered: 0,
    turns: 0,
    failed: 0,
    aborted: 0,
    calls: 0,
    lost: 0,
    answerMs: [],
  };
}

export function countConversation(counts: Counts, { events, posts, executions }: ConversationRun): void {
  const acked = new Map(posts.map(({ id, acked: ack }) => [id, ack?.at]));
  const endings = new Map<string, Event>();
  counts.events += events.length;
  counts.calls += executions.length;
  for (const event of events) {
    if (event.kind === 'tool.result' && event.body.outcome === 'lost') counts.lost += 1;
    if (event.kind !== 'turn.done' && event.kind !== 'turn.failed' && event.kind !== 'turn.aborted') continue;
    counts.turns += 1;
    if (event.kind === 'turn.failed') counts.failed += 1;
    if (event.kind === 'turn.aborted') counts.aborted += 1;
    const agent = parseTurnId(event.turn ?? '')?.agent;
    for (const seq of event.body.covers) endings.set(`${seq}/${agent}`, event);
  }
  for (const { id, seq, to } of events) {
    for (const agent of to) {
      counts.triggers += 1;
      const ending = endings.get(`${seq}/${agent}`);
      if (!ending) counts.unanswered += 1;
      const since = acked.get(id);
      if (ending && since !== undefined) counts.answerMs.push(Math.max(0, ending.at - since));
    }
  }
}
