import { TroupeError } from '../../errors.ts';
import { type Author, type CommandOf, type Event, runtimeId } from '../../events/index.ts';
import type { ConversationKey } from '../../store/store.ts';
import { appendLast, type ConversationDeps } from '../conversations/conversation-deps.ts';
import { mustBePerson } from '../conversations/trust.ts';
import { phaseChange } from './phase-change.ts';

/** Others who change it at once: more would be somebody who does nothing else. */
const MOST_TRIES = 10;

/**
 * A person begins a phase, or changes what is asked in it. The change has one id after the one before it, so of two who
 * change the phase at once the second changes what the first has come to. The same again is the same event.
 */
export async function changePhase(
  { deps, participantsCache, trust }: ConversationDeps,
  log: ConversationKey,
  command: CommandOf<'phase'>,
  by: Author,
): Promise<Event> {
  mustBePerson(trust, by, 'change the phase');
  for (let tries = 1; ; tries++) {
    const before = (await participantsCache.of(log)).tasks.directions.phase;
    const body = await phaseChange(deps, log, before, command);
    if (!body) return present(deps.store, log, before?.seq ?? 0);
    const id = runtimeId('phase', before?.seq ?? 0);
    try {
      const draft = { id, author: by, to: [], kind: 'phase.changed' as const, body };
      return (await appendLast(deps, log, [draft])).event;
    } catch (error) {
      const isTaken = error instanceof TroupeError && error.code === 'event_conflict';
      if (!isTaken || tries === MOST_TRIES) throw error;
    }
  }
}

async function present(
  store: ConversationDeps['deps']['store'],
  log: ConversationKey,
  seq: number,
): Promise<Event> {
  const [event] = await store.read(log, { after: seq - 1, upTo: seq, limit: 1 });
  if (!event) throw new TroupeError('internal', `the log has no event ${seq}`);
  return event;
}
