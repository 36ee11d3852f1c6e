import type { EventId, TurnId } from '../../events/index.ts';
import { estimateTokens, FRAME_TOKENS } from '../estimate-tokens.ts';
import { MEMORIES } from '../live.ts';
import type { Slot } from '../slot.ts';
import { partTokens, renderPart } from '../turn-input.ts';
import type { View } from '../view.ts';

export interface Pruned {
  /** Results, by event. */
  events: ReadonlySet<EventId>;
  /** Turns whose retrieved memories are taken out of their live block. */
  memories: ReadonlySet<TurnId>;
}

/** Shows results as placeholders that say what was there and where all of it is. Sums are left to `recount`. */
export function pruneSlots(view: View, { events, memories }: Pruned): void {
  if (events.size + memories.size === 0) return;
  view.slots = view.slots.map((slot) => {
    if (slot.event !== null && events.has(slot.event)) return withoutOutput(slot);
    const turn = slot.part?.live?.turn;
    return turn !== undefined && memories.has(turn) ? withoutMemories(slot, view.secret) : slot;
  });
}

/** What a placeholder costs at most: results that are hardly larger are left alone. */
export const PLACEHOLDER_TOKENS = 60;

function withoutOutput(slot: Slot): Slot {
  const { message, event, artifact } = slot;
  if (message.role !== 'tool') return slot;
  const where = `read_artifact with id @artifact/${artifact ?? event}`;
  const content = `[the output of ${message.name} was removed to make room. All of it: ${where}]`;
  const tokens = estimateTokens(content) + FRAME_TOKENS;
  return { ...slot, message: { ...message, content }, tokens, pruned: true };
}

/** The same slot where there are none. */
export function withoutMemories(slot: Slot, secret: string): Slot {
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
