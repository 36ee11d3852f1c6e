import { TroupeError } from '../../errors.ts';
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

/** Events that a summary is made from, at most: the last ones of the phase. */
const RECENT_EVENTS = 500;

interface PhaseWish {
  phase: string;
  instructions?: string | undefined;
  summarise?: boolean | undefined;
}

/**
 * The change from the phase that holds to the one that is wanted; null where that holds already. What came of the old
 * one is summed up where another takes its place and agents have said anything in it; `more` is not in the log yet.
 */
export async function phaseChange(
  { store, clock, trust = null }: Pick<EngineDeps, 'store' | 'clock' | 'trust'>,
  log: ConversationKey,
  before: Phase | null,
  { phase, instructions = '', summarise }: PhaseWish,
  more: readonly Event[] = [],
): Promise<PhaseChangedBody | null> {
  if (before?.phase === phase && before.instructions === instructions) return null;
  const isOther = before !== null && before.phase !== phase;
  const body = { phase, instructions, ...(isOther && { from: before.phase }) };
  if (!(summarise ?? isOther)) return body;
  const head = await store.head(log);
  const after = Math.max(before?.seq ?? 0, head - RECENT_EVENTS);
  const events = await readNewest(store, log, { after, upTo: head, limit: RECENT_EVENTS });
  const summary = await inSlices(clock, phaseSteps([...events, ...more], trust));
  return summary ? { ...body, summary } : body;
}
