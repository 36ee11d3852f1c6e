import { firstSeq, lastSeq, linesOf, type Slot } from '../slot.ts';
import type { View } from '../view.ts';

/** A place in a view before which everything may be covered: no call is parted from its result. */
export interface Place {
  /** The last covered event. */
  upTo: number;
  /** Whether a round begins behind it: words of others after the agent's own. */
  beginsRound: boolean;
}

/**
 * The places behind `floor` up to which a compaction may reach, oldest first. A turn may be parted between two of its
 * steps, a block of missed lines between two lines. Inputs and steps of the running turn, and what the view has not
 * shown yet, lie behind the last place or are never covered.
 */
export function placesIn(view: View, floor = view.floor): Place[] {
  const units = unitsOf(view).toSorted((a, b) => a.first - b.first || a.last - b.last);
  const end = Math.min(...view.pending.map(({ seq }) => seq - 1));
  const places: Place[] = [];
  let last = 0;
  for (const [at, unit] of units.entries()) {
    last = Math.max(last, unit.last);
    const next = units[at + 1];
    // In the log a result may stand behind words of others that came while the call ran.
    if (last <= floor || last > end || (next && next.first <= last)) continue;
    places.push({ upTo: last, beginsRound: next?.beginsRound ?? true });
  }
  return places;
}

/** What is covered as a whole: one line of somebody else, or the agent's own words with the results of their calls. */
interface Unit {
  first: number;
  last: number;
  beginsRound: boolean;
}

function unitsOf({ slots, turn }: View): Unit[] {
  const units: Unit[] = [];
  for (const [at, slot] of slots.entries()) {
    const { part, layer, step, message } = slot;
    if (layer === 'summary' || (step !== null && step.turn === turn?.id)) continue;
    const beginsRound = message.role === 'user' && slots[at - 1]?.message.role !== 'user';
    if (part) units.push(...unitsOfLines(slot, beginsRound, turn?.inputs));
    // A synthetic result is in no log and goes with its step.
    else if (lastSeq(slot) !== Infinity) addOwn(units, slot, beginsRound);
  }
  return units;
}

function unitsOfLines(slot: Slot, beginsRound: boolean, inputs: ReadonlySet<number> | undefined): Unit[] {
  const seqs = slot.part ? linesOf(slot.part).map(({ seq }) => seq) : [];
  return seqs
    .filter((seq) => !inputs?.has(seq))
    .map((seq, index) => ({ first: seq, last: seq, beginsRound: beginsRound && index === 0 }));
}

function addOwn(units: Unit[], slot: Slot, beginsRound: boolean): void {
  const step = units.at(-1);
  if (slot.message.role === 'tool' && step) step.last = Math.max(step.last, lastSeq(slot));
  else units.push({ first: firstSeq(slot), last: lastSeq(slot), beginsRound });
}
