import type { Event, TurnId, TurnStartedBody } from '../events/index.ts';
import { readerAt, type Reader } from './attribution.ts';
import { closeGroup } from './call-group.ts';
import { inputLayers } from './input-layers.ts';
import { afterTelling, toldUnder } from './live.ts';
import { RENDERING } from './rendering.ts';
import { settle } from './settle.ts';
import type { Line, Part } from './slot.ts';
import { atOnce, type Steps } from './steps.ts';
import {
  blockPart,
  earlierTrigger,
  LINE_WORK,
  plainPart,
  pushUser,
  verbatim,
  withLive,
} from './turn-input.ts';
import type { View } from './view.ts';

/**
 * The input of a turn, in this order: [handoff summary] [while you were away] [earlier triggers] [the trigger + live].
 * A newcomer under `full` gets the history verbatim instead of the block.
 */
export type TurnInput = { id: TurnId } & TurnStartedBody;

export function beginTurn(view: View, turn: TurnInput): void {
  atOnce(beginTurnSteps(view, turn));
}

/** The view is whole again when the last step is done: nobody else may look at it before. */
export function* beginTurnSteps(view: View, turn: TurnInput): Steps<void> {
  closeGroup(view);
  view.rendering = turn.rendering ?? 1;
  const inputs = new Set(turn.inputs);
  const shown = yield* settle(view, turn.upTo, inputs);
  const reader = readerAt(view, turn.upTo);
  const last = shown.findLast((event) => inputs.has(event.seq) && event.kind !== 'handoff');
  const others = shown.filter((event) => event !== last);
  const newcomer = !view.present;
  const context = newcomer
    ? yield* newcomerParts(others, inputs, reader, turn.join)
    : yield* missedParts(others, inputs, reader);
  const trigger = last
    ? plainPart(verbatim(last, reader))
    : (context.pop() ?? (yield* blockPart([], [], reader)));

  const begins = view.slots.length;
  // A newcomer has missed nothing: what came before it is its history.
  const start = view.chain;
  for (const part of context) yield* pushUser(view, part, turn.upTo, newcomer ? 'history' : 'missed');
  const chainBefore = newcomer ? view.chain : start;
  yield* pushUser(view, withLive(trigger, turn.live, turn.id), turn.upTo, last ? 'trigger' : 'missed');
  const input = yield* inputLayers(view.slots.slice(begins), chainBefore, view.secret);
  view.turn = { id: turn.id, ahead: new Map(), begins, inputs, input };
  view.note = null;
  view.told = afterTelling(toldUnder(view.told, turn.baseline), turn.live);
  view.present = true;
}

function* newcomerParts(
  others: readonly Event[],
  inputs: ReadonlySet<number>,
  reader: Reader,
  join: TurnInput['join'],
): Steps<Part[]> {
  const handoffs = others.filter((event) => isHandover(event, inputs));
  const rest = others.filter((event) => !isHandover(event, inputs));
  const seen = join === 'fresh' ? rest.filter((event) => inputs.has(event.seq)) : rest;
  const parts: Part[] = [];
  for (const event of handoffs) parts.push(yield* blockPart([event], [], reader));
  for (const event of seen) parts.push(yield* alone(verbatim(event, reader)));
  return parts;
}

function* missedParts(others: readonly Event[], inputs: ReadonlySet<number>, reader: Reader): Steps<Part[]> {
  const handoffs = others.filter((event) => isHandover(event, inputs));
  const missed = others.filter((event) => !inputs.has(event.seq));
  const earlier = others.filter((event) => inputs.has(event.seq) && !isHandover(event, inputs));
  const block = handoffs.length + missed.length > 0 ? [yield* blockPart(handoffs, missed, reader)] : [];
  const parts: Part[] = block;
  for (const event of earlier) parts.push(yield* alone(earlierTrigger(event, reader)));
  return parts;
}

function* alone(line: Line): Steps<Part> {
  yield LINE_WORK + line.content.length;
  return plainPart(line);
}

function isHandover(event: Event, inputs: ReadonlySet<number>): boolean {
  return event.kind === 'handoff' && inputs.has(event.seq);
}

/** A preview without a trigger: what waits, as the block it would be. */
export function showWaiting(view: View): void {
  atOnce(showWaitingSteps(view));
}

export function* showWaitingSteps(view: View): Steps<void> {
  view.rendering = RENDERING;
  const events = yield* settle(view, view.upTo, new Set());
  if (events.length === 0) return;
  const reader = readerAt(view, view.upTo);
  if (view.present) {
    yield* pushUser(view, yield* blockPart([], events, reader), view.upTo);
    return;
  }
  for (const event of events) {
    yield* pushUser(view, yield* alone(verbatim(event, reader)), event.seq);
  }
}
