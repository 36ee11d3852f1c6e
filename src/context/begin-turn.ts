import type { Event, TurnId, TurnStartedBody } from '../events/index.ts';
import { readerAt, type Reader } from './attribution.ts';
import { closeGroup } from './call-group.ts';
import { inputLayers } from './input-layers.ts';
import { afterTelling, toldUnder } from './live.ts';
import { RENDERING } from './rendering.ts';
import { settle } from './settle.ts';
import type { Part } from './slot.ts';
import { blockPart, earlierTrigger, plainPart, pushUser, verbatim, withLive } from './turn-input.ts';
import type { View } from './view.ts';

/**
 * The input of a turn, in this order: [handoff summary] [while you were away] [earlier triggers] [the trigger + live].
 * A newcomer under `full` gets the history verbatim instead of the block.
 */
export type TurnInput = { id: TurnId } & TurnStartedBody;

export function beginTurn(view: View, turn: TurnInput): void {
  closeGroup(view);
  view.rendering = turn.rendering ?? 1;
  const inputs = new Set(turn.inputs);
  const shown = settle(view, turn.upTo, inputs);
  const reader = readerAt(view, turn.upTo);
  const last = shown.findLast((event) => inputs.has(event.seq) && event.kind !== 'handoff');
  const others = shown.filter((event) => event !== last);
  const newcomer = !view.present;
  const context = newcomer
    ? newcomerParts(others, inputs, reader, turn.join)
    : missedParts(others, inputs, reader);
  const trigger = last ? plainPart(verbatim(last, reader)) : (context.pop() ?? blockPart([], [], reader));

  const begins = view.slots.length;
  // A newcomer has missed nothing: what came before it is its history.
  const start = view.chain;
  for (const part of context) pushUser(view, part, turn.upTo, newcomer ? 'history' : 'missed');
  const chainBefore = newcomer ? view.chain : start;
  pushUser(view, withLive(trigger, turn.live, turn.id), turn.upTo, last ? 'trigger' : 'missed');
  const input = inputLayers(view.slots.slice(begins), chainBefore, view.secret);
  view.turn = { id: turn.id, ahead: new Map(), begins, inputs, input };
  view.note = null;
  view.told = afterTelling(toldUnder(view.told, turn.baseline), turn.live);
  view.present = true;
}

function newcomerParts(
  others: readonly Event[],
  inputs: ReadonlySet<number>,
  reader: Reader,
  join: TurnInput['join'],
): Part[] {
  const handoffs = others.filter((event) => isHandover(event, inputs));
  const rest = others.filter((event) => !isHandover(event, inputs));
  const seen = join === 'fresh' ? rest.filter((event) => inputs.has(event.seq)) : rest;
  return [
    ...handoffs.map((event) => blockPart([event], [], reader)),
    ...seen.map((event) => plainPart(verbatim(event, reader))),
  ];
}

function missedParts(others: readonly Event[], inputs: ReadonlySet<number>, reader: Reader): Part[] {
  const handoffs = others.filter((event) => isHandover(event, inputs));
  const missed = others.filter((event) => !inputs.has(event.seq));
  const earlier = others.filter((event) => inputs.has(event.seq) && !isHandover(event, inputs));
  const block = handoffs.length + missed.length > 0 ? [blockPart(handoffs, missed, reader)] : [];
  return [...block, ...earlier.map((event) => plainPart(earlierTrigger(event, reader)))];
}

function isHandover(event: Event, inputs: ReadonlySet<number>): boolean {
  return event.kind === 'handoff' && inputs.has(event.seq);
}

/** A preview without a trigger: what waits, as the block it would be. */
export function showWaiting(view: View): void {
  view.rendering = RENDERING;
  const events = settle(view, view.upTo, new Set());
  if (events.length === 0) return;
  const reader = readerAt(view, view.upTo);
  if (view.present) pushUser(view, blockPart([], events, reader), view.upTo);
  else for (const event of events) pushUser(view, plainPart(verbatim(event, reader)), event.seq);
}
