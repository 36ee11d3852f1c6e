import { foldParticipants, newParticipants, type Participants } from '../../machines/participants.ts';
import type { ConversationKey } from '../../store/store.ts';
import { type PageSource, readPages } from '../log/read-pages.ts';

/** The standings of the conversations that are talked in. They can be lost at any moment: a look at the log makes them anew. */
export interface ParticipantsCache {
  of(log: ConversationKey): Promise<Participants>;
  forget(log: ConversationKey): void;
}

/** Conversations at most; the least recently looked at is forgotten first. */
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

/** For a single look. */
export async function participantsOf(events: PageSource, log: ConversationKey): Promise<Participants> {
  const participants = newParticipants();
  await catchUp(events, log, participants);
  return participants;
}

/** Two may catch up with one standing at once: an event is folded by whoever comes first. */
async function catchUp(events: PageSource, log: ConversationKey, participants: Participants): Promise<void> {
  for await (const page of readPages(events, log, { after: participants.tasks.upTo }))
    for (const event of page) foldParticipants(participants, event);
}
