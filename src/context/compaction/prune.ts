import type { EventId, TurnId } from '../../events/index.ts';
import type { Slot, View } from '../view/view.ts';
import type { CompactionPolicy } from './policy.ts';
import { estimateTokens, FRAME_TOKENS } from '../budget/tokens.ts';
import { MEMORIES } from '../view/live.ts';
import { partTokens, renderPart } from '../render/messages.ts';

interface PruneChoice {
  /** Results. */
  events: EventId[];
  /** Counted tokens saved. */
  gain: number;
}

/**
 * Chooses old tool results to show as placeholders, in one batch and the oldest first, until `enough` tokens are saved:
 * a prune costs the cache of everything behind its first change. Calls, failures and exempt tools stay, as do the
 * newest turns and results.
 */
export function choosePrune(view: View, { prune }: CompactionPolicy, enough = Infinity): PruneChoice {
  const prunable = prunableSlots(view, prune);
  const events: EventId[] = [];
  let gain = 0;
  for (const { event, tokens } of prunable) {
    if (gain >= enough) break;
    events.push(event as EventId);
    gain += tokens - PLACEHOLDER_TOKENS;
  }
  return { events, gain };
}

/** Oldest first. */
function prunableSlots({ slots }: View, prune: CompactionPolicy['prune']): Slot[] {
  const prunable: Slot[] = [];
  const end = startOfTurns(slots, prune.turns);
  let newer = 0;
  for (const [at, slot] of [...slots.entries()].toReversed()) {
    if (slot.message.role !== 'tool') continue;
    newer += slot.tokens;
    if (at < end && newer > prune.protectTokens && isPrunable(slot, prune.exempt)) prunable.push(slot);
  }
  return prunable.toReversed();
}

/** The turns, but the newest `turns` and the running one, whose retrieved memories can be removed. Oldest first. */
export function oldMemories({ slots, turn }: View, { prune }: CompactionPolicy): TurnId[] {
  return slots.slice(0, startOfTurns(slots, prune.turns)).flatMap(({ part }) => {
    const live = part?.live;
    return live?.items[MEMORIES] === undefined || live.turn === turn?.id ? [] : [live.turn];
  });
}

function isPrunable({ message, event, tokens }: Slot, exempt: readonly string[]): boolean {
  if (message.role !== 'tool' || event === null || message.failed) return false;
  return tokens > PLACEHOLDER_TOKENS * 2 && !exempt.includes(message.name);
}

/**
 * The start of the newest `turns` turns. A turn starts with a message of another participant after the agent's own
 * words.
 */
function startOfTurns(slots: readonly Slot[], turns: number): number {
  let at = slots.length;
  for (let found = 0; found < turns && at > 0;) {
    at -= 1;
    if (slots[at]?.message.role === 'user' && slots[at - 1]?.message.role !== 'user') found += 1;
  }
  return turns === 0 ? slots.length : at;
}

interface Pruned {
  /** Results, by event. */
  events: ReadonlySet<EventId>;
  /** Turns whose retrieved memories are removed from their live block. */
  memories: ReadonlySet<TurnId>;
}

/** Replaces results by placeholders that name the tool and where the whole output is. `recount` updates the sums. */
export function pruneSlots(view: View, { events, memories }: Pruned): void {
  if (events.size + memories.size === 0) return;
  view.slots = view.slots.map((slot) => {
    if (slot.event !== null && events.has(slot.event)) return withoutOutput(slot);
    const turn = slot.part?.live?.turn;
    return turn !== undefined && memories.has(turn) ? withoutMemories(slot, view.secret) : slot;
  });
}

/** Upper bound of a placeholder. Results that are hardly larger are left alone. */
export const PLACEHOLDER_TOKENS = 60;

/** Tells how much was removed: in characters, which are the same for a draft and its event. */
function withoutOutput(slot: Slot): Slot {
  const { message, event, artifact } = slot;
  if (message.role !== 'tool') return slot;
  const where = `read_artifact with id @artifact/${artifact ?? event}`;
  const content = `[the output of ${message.name} (${message.content.length} characters) was removed to make room. All of it: ${where}]`;
  const tokens = estimateTokens(content) + FRAME_TOKENS;
  return { ...slot, message: { ...message, content }, tokens, pruned: true };
}

/** Returns the same slot if it has no memories. */
function withoutMemories(slot: Slot, secret: string): Slot {
  const { part, message } = slot;
  if (part?.live?.items[MEMORIES] === undefined) return slot;
  const { [MEMORIES]: _, ...items } = part.live.items;
  const shorter = { ...part, live: { ...part.live, items } };
  const content = renderPart(shorter, secret);
  return {
    ...slot,
    part: shorter,
    message: { ...message, content },
    tokens: partTokens(shorter, content, secret),
  };
}
