import { foldParticipants, newParticipants, type Participants } from '../../machines/participants.ts';
import type { ConversationKey } from '../../store/store.ts';
import { type PageSource, readPages } from '../log/read-pages.ts';

/** Participants of conversations in use. Every entry can be rebuilt from the log at any time. */
export interface ParticipantsCache {
  of(log: ConversationKey): Promise<Participants>;
  forget(log: ConversationKey): void;
}

/** Most conversations. The least recently used is dropped first. */
const KEPT = 1_024;

export function createParticipantsCache(events: PageSource): ParticipantsCache {
  const known = new Map<string, Participants>();
  const keyOf = ({ tenant, conversation }: ConversationKey) => `${tenant}/${conversation}`;
  return {
    async of(log) {
      const key = keyOf(log);
      const participants = known.get(key) ?? newParticipants();
      await catchUp(events, log, participants);
      known.delete(key);
      known.set(key, participants);
      if (known.size > KEPT) known.delete(known.keys().next().value ?? key);
      return participants;
    },
    forget: (log) => void known.delete(keyOf(log)),
  };
}

/** The same without the cache, for a single use. */
export async function participantsOf(events: PageSource, log: ConversationKey): Promise<Participants> {
  const participants = newParticipants();
  await catchUp(events, log, participants);
  return participants;
}

/** Two callers may catch up at once: folding an event twice changes nothing. */
async function catchUp(events: PageSource, log: ConversationKey, participants: Participants): Promise<void> {
  for await (const page of readPages(events, log, { after: participants.tasks.upTo }))
    for (const event of page) foldParticipants(participants, event);
}
