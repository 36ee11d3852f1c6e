import type { EventId, TurnId } from '../../events/index.ts';
import { type Line, linesOf, type Part, type Slot, type View } from '../view/view.ts';
import type { CompactionPolicy } from './policy.ts';
import { estimateTokens, FRAME_TOKENS } from '../budget/tokens.ts';
import { placeholder } from '../text/outputs.ts';
import { MEMORIES } from '../view/live.ts';
import { partTokens, renderPart } from '../render/messages.ts';

interface PruneChoice {
  /** Ids of results, of this agent and of others. */
  events: EventId[];
  gain: number;
}

/**
 * Chooses old tool results to show as placeholders, the oldest first, until `enough` tokens are saved. It chooses all in one
 * batch, because a prune invalidates the cache of everything after its first change. Calls, failures, results of exempt tools,
 * and the newest turns and results stay. Results of others are chosen first, because their own agents still have them.
 */
export function choosePrune(view: View, { prune }: CompactionPolicy, enough = Infinity): PruneChoice {
  const own = prunableSlots(view, prune);
  const prunable = view.told ? [...toldOutputs(view, prune), ...own] : own;
  const events: EventId[] = [];
  let gain = 0;
  for (const { event, tokens } of prunable) {
    if (gain >= enough) break;
    events.push(event as EventId);
    gain += tokens - PLACEHOLDER_TOKENS;
  }
  return { events, gain };
}

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

/** Results of others, except those of the newest turns. Oldest first. */
function toldOutputs({ slots, turn }: View, { turns, eachTurn, exempt }: CompactionPolicy['prune']): Line[] {
  const begins = eachTurn ? turn?.begins : undefined;
  return slots
    .slice(0, Math.min(startOfTurns(slots, turns), begins ?? Infinity))
    .flatMap(({ part }) => (part ? linesOf(part) : []))
    .filter(({ output, tokens }) => output && tokens > PLACEHOLDER_TOKENS * 2 && !exempt.includes(output.of));
}

/** Turns whose retrieved memories can be removed: all but the newest `turns` and the running one. Oldest first. */
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
 * Index of the slot where the newest `turns` turns start. A turn starts with a message of another participant after the
 * agent's own words.
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
  events: ReadonlySet<EventId>;
  /** Turns whose retrieved memories are removed from their live block. */
  memories: ReadonlySet<TurnId>;
}

/** Replaces results by placeholders that name the tool and the id of the whole output. The caller then calls `recount`. */
export function pruneSlots(view: View, { events, memories }: Pruned): void {
  if (events.size + memories.size === 0) return;
  view.slots = view.slots.map((slot) => {
    if (slot.event !== null && events.has(slot.event)) return withoutOutput(slot);
    const turn = slot.part?.live?.turn;
    const left = turn !== undefined && memories.has(turn) ? withoutMemories(slot, view.secret) : slot;
    return view.told && left.part ? withoutTold(left, left.part, events, view.secret) : left;
  });
}

/** Upper bound of the tokens of a placeholder. Results that are hardly larger are not pruned. */
export const PLACEHOLDER_TOKENS = 60;

function withoutOutput(slot: Slot): Slot {
  const { message, event, artifact } = slot;
  if (message.role !== 'tool') return slot;
  const content = placeholder(message.name, message.content, artifact ?? event ?? '');
  const tokens = estimateTokens(content) + FRAME_TOKENS;
  return { ...slot, message: { ...message, content }, tokens, pruned: true };
}

/** Replaces results of others in a block. Returns the same slot if it contains none of them. */
function withoutTold(slot: Slot, part: Part, events: ReadonlySet<EventId>, secret: string): Slot {
  if (!linesOf(part).some(({ event, output }) => output && events.has(event))) return slot;
  const prune = (line: Line): Line => (events.has(line.event) ? withoutWords(line) : line);
  const shorter = { ...part, plain: part.plain && prune(part.plain), missed: part.missed.map(prune) };
  const content = renderPart(shorter, secret);
  return {
    ...slot,
    part: shorter,
    message: { ...slot.message, content },
    tokens: partTokens(shorter, content, secret),
    pruned: true,
  };
}

function withoutWords(line: Line): Line {
  const { output, ...rest } = line;
  if (!output) return line;
  const { content, from, to } = rest;
  const text = placeholder(output.of, content.slice(from, to), output.id);
  return {
    ...rest,
    content: content.slice(0, from) + text + content.slice(to),
    to: from + text.length,
    tokens: estimateTokens(text),
  };
}

/** Removes the memories of a slot. Returns the same slot if it has none. */
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
