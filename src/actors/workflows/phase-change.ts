import { phaseSteps } from '../../context/extract/handoff.ts';
import type { Event, PhaseChangedBody } from '../../events/index.ts';
import type { Phase } from '../../machines/directions.ts';
import type { ConversationKey } from '../../store/store.ts';
import type { EngineDeps } from '../engine/engine-deps.ts';
import { inSlices } from '../engine/in-slices.ts';
import { readNewest } from '../log/read-newest.ts';

/** Events that a summary is made from, at most: the last ones of the phase. */
const RECENT_EVENTS = 500;

export interface PhaseWish {
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
