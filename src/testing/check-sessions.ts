import { type Event, eventOf } from '../events/index.ts';
import type { SeenCall } from './fake-sessions.ts';

/**
 * Holds what sessions showed an agent in one conversation against its log: every message that a model call was to see
 * (of others up to where its turn was pinned, and the agent's own replies before) is in what its session held by then
 * exactly once. Messages whose words are not their own are left out. One line for each violation.
 */
export function checkSessions(events: readonly Event[], agent: string, calls: readonly SeenCall[]): string[] {
  const messages = events.flatMap((event) => eventOf(event, 'message') ?? []);
  const bodies = Map.groupBy(messages, ({ body }) => body.content);
  const unique = messages.filter(({ body }) => bodies.get(body.content)?.length === 1);
  const pinned = new Map(
    events.flatMap((event) => {
      const started = eventOf(event, 'turn.started');
      return started ? [[started.turn, started.body.upTo]] : [];
    }),
  );
  const found: string[] = [];
  for (const { trace, session, transcript, change } of calls) {
    if (trace.conversation !== events[0]?.conversation || trace.agent !== agent) continue;
    const all = transcript.join('\n');
    for (const { seq, body, author } of unique) {
      if (seq > (pinned.get(trace.turn) ?? 0)) continue;
      const times = timesOf(body.content, all);
      if (times === 1) continue;
      found.push(
        `session ${session} (${change}) showed ${trace.turn} step ${trace.step} event ${seq} of ${author.id}, "${body.content}", ${times} times`,
      );
    }
  }
  return found;
}

/** As words of their own: "message 1" is not in "message 12". */
function timesOf(text: string, all: string): number {
  let times = 0;
  for (let at = all.indexOf(text); at >= 0; at = all.indexOf(text, at + 1)) {
    if (!/[\w:]/.test(all[at + text.length] ?? '')) times += 1;
  }
  return times;
}
