import type { Event } from '../../events/index.ts';
import { firstSeq, lastSeq, linesOf, type Slot } from '../slot.ts';
import type { View } from '../view.ts';

/**
 * Up to which event a new compaction should reach, so that about `keepTokens` stay verbatim behind it; 0 if there is
 * nothing to cover. What the running turn is to answer and has done is not counted: it stays anyway.
 */
export function planCut(view: View, keepTokens: number): number {
  const units = view.slots.flatMap((slot) => unitsOf(slot, view));
  let tokens = 0;
  let from = units.length;
  for (let at = units.length - 1; at >= 0; at--) {
    const unit = units[at] as Unit;
    tokens += unit.tokens;
    if (tokens > keepTokens) break;
    // A round begins with words of somebody else; one that would be cut in two is covered whole.
    if (unit.begins) from = at;
  }
  const kept = [...units.slice(from).map(({ first }) => first), ...view.pending.map(({ seq }) => seq)];
  const covered = units.slice(0, from).map(({ last }) => last);
  if (covered.length === 0) return 0;
  return Math.min(Math.max(...covered), ...kept.map((seq) => seq - 1));
}

interface Unit {
  first: number;
  last: number;
  tokens: number;
  begins: boolean;
}

function unitsOf(slot: Slot, { turn }: View): Unit[] {
  const { message, part, step, tokens, layer } = slot;
  if (layer === 'summary' || (step !== null && step.turn === turn?.id)) return [];
  if (!part) return [{ first: firstSeq(slot), last: lastSeq(slot), tokens, begins: message.role === 'user' }];
  return linesOf(part)
    .filter(({ seq }) => !turn?.inputs.has(seq))
    .map((line) => ({ first: line.seq, last: line.seq, tokens: line.tokens, begins: true }));
}

/**
 * The last place at or before `upTo` where no agent's call waits for its result: a summary that parts a call from its
 * result would leave one of them alone in somebody's view.
 */
export function pairSafe(events: readonly Event[], upTo: number): number {
  const open = new Map<string, Set<string>>();
  let safe = 0;
  for (const event of events) {
    if (event.seq > upTo) break;
    const { author, kind } = event;
    if (author.kind === 'agent') {
      if (kind === 'step') open.set(author.id, new Set(event.body.calls.map(({ id }) => id)));
      else if (kind === 'tool.result') open.get(author.id)?.delete(event.body.call);
      else if (kind === 'message' || kind.startsWith('turn.')) open.delete(author.id);
    }
    if ([...open.values()].every((waiting) => waiting.size === 0)) safe = event.seq;
  }
  return safe;
}
