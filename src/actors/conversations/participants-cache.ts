import { conversationKey } from '../../events/index.ts';
import { foldParticipants, newParticipants, type Participants } from '../../machines/participants.ts';
import type { ConversationKey } from '../../store/store.ts';
import { type Checkpoints, NO_CHECKPOINTS } from '../log/checkpoints.ts';
import type { PageSource } from '../log/read-pages.ts';

/** Participants of conversations in use. Every entry can be rebuilt from the log at any time. */
export interface ParticipantsCache {
  of(log: ConversationKey): Promise<Participants>;
  forget(log: ConversationKey): void;
}

/** Most conversations. The least recently used is dropped first. */
const KEPT = 1_024;
const SUBJECT = 'participants';

interface Entry {
  participants: Participants;
  /** Seq of the last checkpoint. */
  stored: number;
}

export function createParticipantsCache(
  events: PageSource,
  checkpoints: Checkpoints = NO_CHECKPOINTS,
): ParticipantsCache {
  const known = new Map<string, Entry>();

  async function store(log: ConversationKey, entry: Entry, upTo: number): Promise<void> {
    entry.stored = upTo;
    const place = await checkpoints.mark(log, upTo);
    // Extended or forgotten meanwhile: a later call stores it.
    if (entry.participants.tasks.upTo !== upTo || known.get(conversationKey(log)) !== entry) return;
    if (place) checkpoints.save(log, SUBJECT, place, [structuredClone(entry.participants)]);
  }

  return {
    async of(log) {
      const key = conversationKey(log);
      const entry = known.get(key) ?? (await restored(checkpoints, log));
      await catchUp(events, log, entry.participants);
      known.delete(key);
      known.set(key, entry);
      if (known.size > KEPT) known.delete(known.keys().next().value ?? key);
      const { upTo, tasks } = entry.participants.tasks;
      // A fold of many tasks is stored less often.
      if (upTo - entry.stored >= Math.max(checkpoints.least, tasks.size)) void store(log, entry, upTo);
      return entry.participants;
    },
    forget: (log) => void known.delete(conversationKey(log)),
  };
}

async function restored(checkpoints: Checkpoints, log: ConversationKey): Promise<Entry> {
  const found = await checkpoints.load(log, SUBJECT);
  if (!found) return { participants: newParticipants(), stored: 0 };
  return { participants: found.parts[0] as Participants, stored: found.seq };
}

/** The same without the cache, for a single use. */
export async function participantsOf(
  events: PageSource,
  log: ConversationKey,
  checkpoints: Checkpoints = NO_CHECKPOINTS,
): Promise<Participants> {
  const { participants } = await restored(checkpoints, log);
  await catchUp(events, log, participants);
  return participants;
}

/** Two callers may catch up at once: folding an event twice changes nothing. */
async function catchUp(events: PageSource, log: ConversationKey, participants: Participants): Promise<void> {
  for (let isLast = false; !isLast;) {
    const page = await events.readPage(log, { after: participants.tasks.upTo });
    for (const event of page.events) foldParticipants(participants, event);
    isLast = page.isLast;
  }
}
