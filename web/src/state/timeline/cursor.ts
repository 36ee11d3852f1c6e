import { signal } from '@preact/signals';
import { go, href, parseRoute, route } from '../route.ts';
import { selectEvent } from '../selection.ts';
import type { Target } from './layout.ts';
import type { ThreadSpan, TurnSpan } from './spans.ts';
import { expanded, fitRange, reveal, spans } from './view.ts';

/** The turn with the keyboard focus; null until a key is pressed. */
export const cursor = signal<TurnSpan | null>(null);

/** Moves to the previous or next turn in the lane, or to the turn in the next lane that began at about the same time. */
export function moveCursor(across: -1 | 0 | 1, down: -1 | 0 | 1): void {
  const lanes = (spans.peek()?.lanes ?? []).filter(({ turns }) => turns.length > 0);
  const from = cursor.peek() ?? chosenTurn();
  const lane = lanes.findIndex(({ agent }) => agent === from?.agent);
  if (!from || lane < 0) return setCursor(lanes.at(-1)?.turns.at(-1));
  if (down === 0) {
    const turns = lanes[lane]?.turns ?? [];
    return setCursor(turns[turns.findIndex(({ id }) => id === from.id) + across]);
  }
  const near = lanes[lane + down]?.turns ?? [];
  setCursor(near.findLast(({ start }) => start <= from.start) ?? near[0]);
}

/** Moves to the first (0) or last (-1) turn of its lane. */
export function moveCursorTo(index: 0 | -1): void {
  const { agent } = cursor.peek() ?? chosenTurn() ?? {};
  const lanes = spans.peek()?.lanes ?? [];
  const lane = lanes.find((each) => each.agent === agent) ?? lanes.findLast(({ turns }) => turns.length > 0);
  setCursor(lane?.turns.at(index));
}

function setCursor(turn: TurnSpan | undefined): void {
  if (!turn) return;
  cursor.value = turn;
  reveal([turn.start, turn.end]);
}

export function chosenTurn(): TurnSpan | null {
  const { turn: id } = route.peek();
  if (id === null) return null;
  for (const { turns } of spans.peek()?.lanes ?? []) {
    const found = turns.findLast((turn) => turn.id === id);
    if (found) return found;
  }
  return null;
}

export function fitChosen(): void {
  const turn = cursor.peek() ?? chosenTurn();
  if (turn) fitTurn(turn);
}

/** Shows one turn across the whole width, with its parts. */
export function fitTurn(turn: TurnSpan): void {
  expanded.value = new Set(expanded.peek()).add(turn.agent);
  fitRange([
    turn.queued === null ? turn.start : Math.max(turn.queued, turn.start - (turn.end - turn.start)),
    turn.end,
  ]);
}

export function toggleLane(agent: string): void {
  const next = new Set(expanded.peek());
  if (!next.delete(agent)) next.add(agent);
  expanded.value = next;
}

export function selectTarget(target: Target): void {
  switch (target.kind) {
    case 'turn':
    case 'part':
      return selectSpan(target.turn, target.thread, target.kind === 'part' && target.part.kind === 'tool');
    case 'thread':
      return selectTask(target.span);
    case 'event':
      return selectEvent(target.seq, null);
    case 'many':
      return fitRange([target.from, target.to]);
  }
}

/** A task that was given in a thread belongs to another conversation. */
function selectTask({ task, givenIn }: ThreadSpan): void {
  if (givenIn === null) return selectEvent(task.seq, null);
  go(parseRoute(new URL(href({ conversation: givenIn, event: task.seq }), location.href)));
}

/** A turn of a thread belongs to another conversation. */
function selectSpan({ id, agent }: TurnSpan, thread: string | null, isTool: boolean): void {
  if (thread === null)
    return go({
      turn: id,
      agent,
      event: null,
      step: null,
      vs: null,
      ...(isTool && { tab: 'tools' as const }),
    });
  go(parseRoute(new URL(href({ conversation: thread, turn: id }), location.href)));
}
