import type { Adoption, EventId, TurnId } from '../../events/index.ts';
import { closeGroup } from '../call-group.ts';
import { estimateTokens, FRAME_TOKENS } from '../estimate-tokens.ts';
import { lastSeq, linesOf, type Part, type Slot } from '../slot.ts';
import { renderCompaction, renderTurnPrefix } from '../summary/render-compaction.ts';
import { partTokens, userMessage } from '../turn-input.ts';
import type { OpenTurn, View } from '../view.ts';
import { pruneSlots } from './prune-slots.ts';
import { recount } from './recount.ts';
import { trimSlots } from './trim-slots.ts';

/**
 * Begins the view anew with a shared compaction: what it covers is left out, what is newer stays as it was.
 *  A1  Every event up to `upTo` is covered, but for the inputs of the running turn: what is to be answered stays.
 *  A2  A step and its results are left out together or not at all.
 *  A3  Of a block of missed lines only the covered ones are left out.
 */
export function adopt(view: View, id: EventId, adoption: Adoption, { hashes = true } = {}): void {
  closeGroup(view);
  const summary = summarySlot(view, adoption);
  const { slots, turn } = view;
  const begins = turn?.begins ?? Infinity;
  const kept: Slot[] = summary ? [summary] : [];
  const prefix = turn && adoption.turn ? prefixSlot(view, turn, adoption.turn) : null;
  const isCovered = (seq: number) => summary !== null && seq <= adoption.upTo && !turn?.inputs.has(seq);
  let keptBefore: number | null = null;
  let isPrefixed = false;
  for (const [at, group] of groupsOf(slots)) {
    if (at >= begins) keptBefore ??= kept.length;
    const [head] = group;
    if (prefix && isInPrefix(head, adoption.turn)) {
      if (!isPrefixed) kept.push(prefix.slot);
      isPrefixed = true;
      for (const slot of group) prefix.cover(slot);
    } else if (summary && head.layer === 'summary') continue;
    else if (head.part)
      kept.push(...withoutLines(head, head.part, isCovered, { view, isInput: at >= begins }));
    else if (!group.every((slot) => isLeftOut(slot, isCovered))) kept.push(...group);
  }
  view.slots = kept;
  if (turn) view.turn = { ...turn, begins: keptBefore ?? kept.length };
  pruneSlots(view, { events: new Set(adoption.pruned ?? []), memories: new Set(adoption.forgotten ?? []) });
  trimSlots(view, adoption.trimmed ?? []);
  if (summary) view.floor = Math.max(view.floor, adoption.upTo);
  const { compaction, reason, tokens } = adoption;
  view.cuts.push({ event: id, kind: 'adopt', reason, tokens, upTo: adoption.upTo, compaction });
  recount(view, { hashes });
}

function summarySlot(view: View, { compaction, upTo }: Adoption): Slot | null {
  // A log that was cut before it was imported may name one that is not there: then nothing is covered.
  const body = compaction === null ? undefined : view.compactions.get(compaction);
  if (!body) return null;
  const content = renderCompaction(body, view.secret);
  return {
    message: { role: 'user', content, seqs: [] },
    tokens: body.tokens.after + FRAME_TOKENS,
    layer: 'summary',
    part: null,
    event: compaction,
    at: upTo,
    step: null,
    artifact: null,
  };
}

/** The slots, each step with its results. */
function* groupsOf(slots: readonly Slot[]): Generator<[at: number, group: [Slot, ...Slot[]]]> {
  for (let at = 0; at < slots.length;) {
    const head = slots[at] as Slot;
    let end = at + 1;
    while (slots[end]?.message.role === 'tool') end += 1;
    yield [at, [head, ...slots.slice(at + 1, end)]];
    at = end;
  }
}

function isLeftOut(slot: Slot, isCovered: (seq: number) => boolean): boolean {
  // The synthetic result of a call shares the fate of its step.
  if (slot.message.role === 'tool' && slot.message.seqs.length === 0 && slot.event === null) return true;
  return isCovered(lastSeq(slot));
}

function withoutLines(
  slot: Slot,
  part: Part,
  isCovered: (seq: number) => boolean,
  { view, isInput }: { view: View; isInput: boolean },
): Slot[] {
  const lines = linesOf(part);
  const left = lines.filter(({ seq }) => !isCovered(seq));
  if (left.length === lines.length && (lines.length > 0 || !isCovered(lastSeq(slot)))) return [slot];
  // The running turn's own input ends in its live block, whatever else is left of it.
  if (left.length === 0 && !(isInput && part.live)) return [];
  const shorter: Part = {
    ...part,
    handoffs: part.handoffs.filter(({ seq }) => !isCovered(seq)),
    missed: part.missed.filter(({ seq }) => !isCovered(seq)),
  };
  const seqs = left.map(({ seq }) => seq);
  const message = userMessage(shorter, view.secret, seqs);
  const tokens = partTokens(shorter, message.content, view.secret);
  return [{ ...slot, part: shorter, message, tokens }];
}

type Prefix = NonNullable<Adoption['turn']>;

function isInPrefix({ step }: Slot, prefix: Prefix | undefined): boolean {
  return step !== null && prefix !== undefined && step.turn === prefix.id && step.index < prefix.steps;
}

/** The early steps of a long turn as one message, which takes over their seqs, also those that come later. */
function prefixSlot(view: View, turn: OpenTurn, { id, text }: Prefix) {
  const seqs: number[] = [];
  const content = renderTurnPrefix(text, view.secret, id);
  const slot: Slot = {
    message: { role: 'user', content, seqs },
    tokens: estimateTokens(content) + FRAME_TOKENS,
    layer: 'history',
    part: null,
    event: null,
    at: null,
    step: { turn: id as TurnId, index: 0 },
    artifact: null,
  };
  function cover({ event, message }: Slot): void {
    seqs.push(...message.seqs);
    if (event !== null && turn.ahead.has(event)) turn.ahead.set(event, { seqs });
    // An earlier prefix that is covered in turn has no event of its own; what waits for its seq waits for this one now.
    for (const [waiting, ahead] of turn.ahead) {
      if (ahead.seqs === message.seqs) turn.ahead.set(waiting, { seqs });
    }
  }
  return { slot, cover };
}
