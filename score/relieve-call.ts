import {
  choosePrune,
  DEFAULT_POLICY,
  latestCompaction,
  type ReliefPolicy,
  type Room,
  roomOf,
  scaledPolicy,
  type View,
} from '../src/context/index.ts';
import { budgetOf } from '../src/context/budget/token-budget.ts';
import { isWithin, sizeIn } from '../src/context/relief/room.ts';
import type { EventDraft, ReliefReason } from '../src/events/index.ts';
import { relieveView } from '../test/support/relieve-view.ts';
import { BASELINE, type ModelCall, type Replay } from './replay.ts';

/** A model's window and how it is relieved. */
export interface Window {
  policy: ReliefPolicy;
  room: Room;
}

export interface WindowOptions {
  window: number;
  maxOutputTokens?: number;
  /** Tokens of the baseline. */
  fixed?: number;
  policy?: ReliefPolicy;
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

/** As in `src/actors/relief/wants-relief.ts`. */
const WORTH_A_REWRITE_SHARE = 0.4;
const GROWTH = 1.05;

/** Relieves the views of a replayed conversation when the engine would, before a request is sent. */
export class Relief {
  readonly window: Window;
  /** How often the ladder was climbed. */
  climbs = 0;
  readonly #stuckAt = new Map<string, number>();

  constructor(window: Window) {
    this.window = window;
  }

  /** The rewrite that was carried out, or null. */
  beforeCall(replay: Replay, call: ModelCall): EventDraft | null {
    const reason = this.#reasonFor(call);
    if (!reason) return null;
    this.climbs += 1;
    const { view, outputs, agent } = call;
    const { policy, room } = this.window;
    const before = sizeIn(view, room);
    const { log } = replay;
    const append = (draft: EventDraft) => replay.append(draft);
    const draft = relieveView({ view, log, append, outputs, policy, room, reason, baseline: BASELINE });
    const isStuck = !draft || !isWithin(view, room, room.trigger);
    if (isStuck) this.#stuckAt.set(agent, draft ? sizeIn(view, room) : before);
    else this.#stuckAt.delete(agent);
    return draft;
  }

  #reasonFor({ view, agent, step, at }: ModelCall): ReliefReason | null {
    const { policy, room } = this.window;
    const size = sizeIn(view, room);
    const stuckAt = this.#stuckAt.get(agent);
    if (stuckAt !== undefined && size <= stuckAt * GROWTH && size <= room.available) return null;
    if (size >= room.trigger) return 'over_budget';
    const isCold = view.spokeAt !== null && at - view.spokeAt > policy.coldMs;
    const isDue = step === 0 && isCold && size >= room.available * WORTH_A_REWRITE_SHARE;
    return isDue && hasWorkWhenCold(view, policy) ? 'cold_cache' : null;
  }
}

function hasWorkWhenCold(view: View, policy: ReliefPolicy): boolean {
  const latest = latestCompaction(view);
  if (latest !== null && latest.body.upTo > view.floor) return true;
  return choosePrune(view, policy).gain >= policy.prune.minGain;
}
