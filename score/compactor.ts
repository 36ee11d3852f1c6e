import {
  adoptStrategy,
  DEFAULT_POLICY,
  type CompactionPolicy,
  isEmptyPlan,
  isWorthwhile,
  pruneStrategy,
  type Room,
  roomOf,
  scaledPolicy,
  startRun,
  type View,
} from '../src/context/index.ts';
import { budgetOf } from '../src/context/budget/windows.ts';
import { isWithin, sizeIn } from '../src/context/compaction/policy.ts';
import type { EventDraft, CompactionReason } from '../src/events/index.ts';
import { compactView } from '../test/support/compact-view.ts';
import { BASELINE, type ModelCall, type Replay } from './replay.ts';

/** A model's window and its compaction policy. */
export interface Window {
  policy: CompactionPolicy;
  room: Room;
}

export interface WindowOptions {
  window: number;
  maxOutputTokens?: number;
  /** Tokens of the baseline. */
  fixed?: number;
  policy?: CompactionPolicy;
}

export function windowFor({
  window,
  maxOutputTokens = 0,
  fixed = 0,
  policy = DEFAULT_POLICY,
}: WindowOptions): Window {
  const { available } = budgetOf({ window, maxOutputTokens });
  const scaled = scaledPolicy(policy, available);
  return { policy: scaled, room: roomOf({ available, fixed, ratio: 1, reason: 'over_budget' }, scaled) };
}

/** As in `src/actors/features/compaction/feature.ts`. */
const COLD_SHARE = 0.4;
const GROWTH = 1.05;

/** Compacts the views of a replayed conversation when the engine would: before a request is sent. */
export class Compactor {
  readonly window: Window;
  readonly #stuckAt = new Map<string, number>();

  constructor(window: Window) {
    this.window = window;
  }

  isDue(call: ModelCall): boolean {
    return this.#reasonFor(call) !== null;
  }

  /** Returns the compaction or prune that ran, or null. */
  beforeCall(replay: Replay, call: ModelCall): EventDraft | null {
    const reason = this.#reasonFor(call);
    if (!reason) return null;
    const { view, agent } = call;
    const { room } = this.window;
    const draft = this.#compact(replay, call, { ...this.window, reason });
    if (isWithin(view, room, room.trigger)) this.#stuckAt.delete(agent);
    else this.#stuckAt.set(agent, sizeIn(view, room));
    return draft;
  }

  /** After the provider refused the request as too long. `available` is the assumed limit. */
  afterRefusal(replay: Replay, call: ModelCall, available: number): EventDraft | null {
    const { policy, room } = this.window;
    const reason = 'overflow';
    const tighter = roomOf({ available, fixed: room.fixed, ratio: 1, reason }, policy);
    return this.#compact(replay, call, { policy, room: tighter, reason });
  }

  #compact(
    { log, append }: Replay,
    { view, outputs }: ModelCall,
    how: Window & { reason: CompactionReason },
  ): EventDraft | null {
    return compactView({ view, log, append, outputs, baseline: BASELINE, ...how });
  }

  #reasonFor({ view, agent, step, at }: ModelCall): CompactionReason | null {
    const { policy, room } = this.window;
    const size = sizeIn(view, room);
    const stuckAt = this.#stuckAt.get(agent);
    if (stuckAt !== undefined && size <= stuckAt * GROWTH && size <= room.available) return null;
    if (size >= room.trigger) return 'over_budget';
    const isCold = view.spokeAt !== null && at - view.spokeAt > policy.coldMs;
    const isDue = step === 0 && isCold && size >= room.available * COLD_SHARE;
    return isDue && hasWorkWhenCold(view, this.window) ? 'cold_cache' : null;
  }
}

function hasWorkWhenCold(view: View, { policy, room }: Window): boolean {
  const run = startRun(view, { reason: 'cold_cache', policy, room });
  if (adoptStrategy(run) !== 'fits') pruneStrategy(run);
  return !isEmptyPlan(run.plan) && isWorthwhile(run);
}
