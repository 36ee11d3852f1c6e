import type { Event } from '../../events/index.ts';
import { firstSeq, lastSeq, lineTokens, linesOf, type Slot } from '../slot.ts';
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
  // A synthetic result goes with its step.
  if (!part && lastSeq(slot) === Infinity) return [];
  if (!part) return [{ first: firstSeq(slot), last: lastSeq(slot), tokens, begins: message.role === 'user' }];
  return linesOf(part)
    .filter(({ seq }) => !turn?.inputs.has(seq))
    .map((line) => ({ first: line.seq, last: line.seq, tokens: lineTokens(line), begins: true }));
}

/**
 * The last place at or before `upTo` where no call waits for its result: a summary that parts a call from its result
 * would leave one of them alone in somebody's view. `events` reach as far as the log is known.
 */
export function pairSafe(events: readonly Event[], upTo: number): number {
  let safe = upTo;
  // Where one is left out, an earlier one may be parted by that: so from the last to the first.
  for (const { from, to } of pairsOf(events).toSorted((a, b) => b.from - a.from)) {
    if (from <= safe && to > safe) safe = from - 1;
  }
  return safe;
}

/** From each call to its result; those of a turn that is still being written down may have theirs yet to come. */
function pairsOf(events: readonly Event[]): { from: number; to: number }[] {
  const pairs: { from: number; to: number; turn: string | undefined }[] = [];
  const latest = new Map<string, { to: number }>();
  const ended = new Set<string | undefined>([undefined]);
  for (const { kind, author, turn, seq, body } of events) {
    if (kind === 'step') {
      for (const { id } of body.calls) {
        const pair = { from: seq, to: Infinity, turn };
        pairs.push(pair);
        latest.set(`${author.id} ${id}`, pair);
      }
    } else if (kind === 'tool.result') {
      const pair = latest.get(`${author.id} ${body.call}`);
      if (pair) pair.to = seq;
    } else if (kind === 'turn.done' || kind === 'turn.failed' || kind === 'turn.aborted') ended.add(turn);
  }
  return pairs.filter(({ to, turn }) => to !== Infinity || !ended.has(turn));
}
