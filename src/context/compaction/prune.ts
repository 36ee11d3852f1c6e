import type { EventId, TurnId } from '../../events/index.ts';
import type { Slot } from '../slot.ts';
import type { View } from '../view.ts';
import type { CompactionPolicy } from './policy.ts';
import { estimateTokens, FRAME_TOKENS } from '../tokens.ts';
import { MEMORIES } from '../live.ts';
import { partTokens, renderPart } from '../turn-input.ts';

interface PruneChoice {
  /** Results. */
  events: EventId[];
  /** Turns whose retrieved memories are removed. Retrieval finds them again when they are useful. */
  memories: TurnId[];
  /** Counted tokens saved. */
  gain: number;
}

/**
 * Chooses old tool results to show as placeholders and old memories to remove, in one batch: a prune costs the cache
 * of everything behind it, so it must be worth it. Calls, failures and exempt tools stay, as do the newest turns and
 * results.
 */
export function choosePrune(view: View, { prune }: CompactionPolicy): PruneChoice {
  const choice: PruneChoice = { events: [], memories: [], gain: 0 };
  let newer = 0;
  const end = startOfTurns(view.slots, prune.turns);
  for (let at = view.slots.length - 1; at >= 0; at--) {
    const slot = view.slots[at] as Slot;
    const isOld = at < end;
    if (slot.message.role !== 'tool') {
      if (isOld) chooseMemoriesOf(slot, view, choice);
      continue;
    }
    newer += slot.tokens;
    if (!isOld || newer <= prune.protectTokens || !isPrunable(slot, prune.exempt)) continue;
    choice.events.unshift(slot.event as EventId);
    choice.gain += slot.tokens - PLACEHOLDER_TOKENS;
  }
  return choice;
}

function chooseMemoriesOf(slot: Slot, view: View, choice: PruneChoice): void {
  const turn = slot.part?.live?.turn;
  const bare = withoutMemories(slot, view.secret);
  if (turn === undefined || turn === view.turn?.id || bare === slot) return;
  choice.memories.unshift(turn);
  choice.gain += slot.tokens - bare.tokens;
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

function withoutOutput(slot: Slot): Slot {
  const { message, event, artifact } = slot;
  if (message.role !== 'tool') return slot;
  const where = `read_artifact with id @artifact/${artifact ?? event}`;
  const content = `[the output of ${message.name} was removed to make room. All of it: ${where}]`;
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
