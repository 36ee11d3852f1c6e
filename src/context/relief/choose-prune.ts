import type { EventId } from '../../events/index.ts';
import { PLACEHOLDER_TOKENS } from '../rewrite/prune-slots.ts';
import type { Slot } from '../slot.ts';
import type { View } from '../view.ts';
import type { ReliefPolicy } from './policy.ts';

export interface PruneChoice {
  events: EventId[];
  /** Counted tokens that placeholders save. */
  gain: number;
}

/**
 * Which old tool results to show as placeholders, in one batch: each prune costs the cache of what follows, so it must
 * be worth it. Calls, failures and exempt tools stay; so do the newest turns and the newest results.
 */
export function choosePrune(view: View, { prune }: ReliefPolicy): PruneChoice {
  const events: EventId[] = [];
  let gain = 0;
  let newer = 0;
  const end = startOfTurns(view.slots, prune.turns);
  for (let at = view.slots.length - 1; at >= 0; at--) {
    const slot = view.slots[at] as Slot;
    if (slot.message.role !== 'tool') continue;
    newer += slot.tokens;
    if (at >= end || newer <= prune.protectTokens || !isPrunable(slot, prune.exempt)) continue;
    events.unshift(slot.event as EventId);
    gain += slot.tokens - PLACEHOLDER_TOKENS;
  }
  return { events, gain };
}

function isPrunable({ message, event, tokens }: Slot, exempt: readonly string[]): boolean {
  if (message.role !== 'tool' || event === null || message.failed) return false;
  return tokens > PLACEHOLDER_TOKENS * 2 && !exempt.includes(message.name);
}

/** Where the newest `turns` turns begin: at a message of somebody else after the agent's own words. */
function startOfTurns(slots: readonly Slot[], turns: number): number {
  let at = slots.length;
  for (let found = 0; found < turns && at > 0;) {
    at -= 1;
    if (slots[at]?.message.role === 'user' && slots[at - 1]?.message.role !== 'user') found += 1;
  }
  return turns === 0 ? slots.length : at;
}
