import { messageUpdate, type SessionUpdate } from '../doors/acp/session-updates.ts';
import type { Troupe } from '../library/troupe.ts';

/** Longest history that is told, in events: the newest. */
const MOST_TOLD = 2_000;

/** The messages of a conversation so far. Throws `conversation_unknown`. */
export async function* loadSession(
  troupe: Troupe,
  conversation: string,
): AsyncGenerator<SessionUpdate, void> {
  const nameOf = (agent: string) => troupe.agents.find(({ id }) => id === agent)?.name ?? agent;
  const { head } = await troupe.state(conversation);
  for (let after = Math.max(0, head - MOST_TOLD); after < head;) {
    const { events } = await troupe.events(conversation, { after });
    for (const event of events) yield* messageUpdate(event, nameOf);
    const last = events.at(-1);
    if (!last) return;
    after = last.seq;
  }
}
