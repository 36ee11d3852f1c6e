import { TroupeError } from '../../base/errors.ts';
import {
  type Author,
  type CommandOf,
  type Event,
  type PhaseChangedBody,
  runtimeId,
} from '../../events/index.ts';
import type { ConversationKey } from '../../store/store.ts';
import { appendLast, type ConversationDeps } from '../conversations/conversation-deps.ts';
import { requirePerson } from '../conversations/trust.ts';
import { phaseSteps } from '../../context/extract/handoff.ts';
import type { Phase } from '../../machines/directions.ts';
import type { EngineDeps } from '../engine/engine-deps.ts';
import { inSlices } from '../engine/in-slices.ts';
import { readNewest } from '../log/read-pages.ts';

/** Most concurrent changes that are retried. */
const MOST_TRIES = 10;

/**
 * Begins a phase, or changes its instructions, for a person. The id of a change follows from the change before it, so of
 * two concurrent changes the second applies to the result of the first. Repeating a change returns its event.
 */
export async function changePhase(
  { deps, participantsCache, trust }: ConversationDeps,
  log: ConversationKey,
  command: CommandOf<'phase'>,
  by: Author,
): Promise<Event> {
  requirePerson(trust, by, 'change the phase');
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

/** Most events of a phase, counted from its end, that a summary is made from. */
const RECENT_EVENTS = 500;

interface PhaseWish {
  phase: string;
  instructions?: string | undefined;
  summarise?: boolean | undefined;
  unstored?: readonly Event[] | undefined;
}

/**
 * The change from the present phase to the wanted one; null if it is the same. The old phase is summarised if another one
 * replaces it and agents said something in it. `unstored`: events of the phase that are not in the log yet.
 */
export async function phaseChange(
  { store, clock, trust = null }: Pick<EngineDeps, 'store' | 'clock' | 'trust'>,
  log: ConversationKey,
  before: Phase | null,
  { phase, instructions = '', summarise, unstored = [] }: PhaseWish,
): Promise<PhaseChangedBody | null> {
  if (before?.phase === phase && before.instructions === instructions) return null;
  const isOther = before !== null && before.phase !== phase;
  const body = { phase, instructions, ...(isOther && { from: before.phase }) };
  if (!(summarise ?? isOther)) return body;
  const head = await store.head(log);
  const after = Math.max(before?.seq ?? 0, head - RECENT_EVENTS);
  const events = await readNewest(store, log, { after, upTo: head, limit: RECENT_EVENTS });
  const summary = await inSlices(clock, phaseSteps([...events, ...unstored], trust));
  return summary ? { ...body, summary } : body;
}
