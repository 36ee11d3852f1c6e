import { cacheRequestOf, type CacheRequest, simulateCache } from '../src/context/cache/cache-cost.ts';
import { sizeIn } from '../src/context/compaction/policy.ts';
import { countTokens } from '../src/context/budget/tokens.ts';
import type { Slot, View } from '../src/context/index.ts';
import type { Event } from '../src/events/index.ts';
import { Compactor, windowFor } from './compactor.ts';
import { rulesOf } from './price-replay.ts';
import { promptFor, Replay, withAssistant } from './replay.ts';

/** A rewrite of an agent's view, and what was left of it. Tokens are as counted. */
interface Rewrite {
  kind: 'prune' | 'compaction';
  /** Share of the available room that it gained. */
  gain: number;
  /** Size afterwards beside the target, as a share of the target. */
  distance: number;
  /** Whether the newest covered messages, a call with its results or one text, would have had room up to the target. */
  wastes: boolean;
  /** Whether the running turn itself was shortened. */
  trims: boolean;
  /** Whether the request fitted before. */
  fitted: boolean;
  /** Rounds behind the summary that are there from their first message, that of the running turn included. */
  rounds: number;
  /** Tokens behind the summary. */
  tokens: number;
  /** Target less the baseline. */
  room: number;
}

export interface Rewrites {
  requests: number;
  rewrites: Rewrite[];
  /** Share of the input read from the cache, at Anthropic's rules; null if not asked for. */
  hitRate: number | null;
}

export interface RewriteOptions {
  window: number;
  /** Measures the cache too, with the times of the log. */
  cache?: boolean;
}

/** Tokens of tools and system. */
const FIXED = 800;
const MAX_OUTPUT_TOKENS = 8_192;
const OUTPUT_SHARE = 1 / 8;

/** Plays a log as turns of one agent in a window and measures every rewrite. */
export function measureRewrites(
  source: readonly Event[],
  { window, cache = false }: RewriteOptions,
): Rewrites {
  const replay = new Replay(() => 'assistant');
  const maxOutputTokens = Math.min(MAX_OUTPUT_TOKENS, Math.floor(window * OUTPUT_SHARE));
  const compactor = new Compactor(windowFor({ window, maxOutputTokens, fixed: FIXED }));
  const { room } = compactor.window;
  const rewrites: Rewrite[] = [];
  const requests: CacheRequest[] = [];
  let count = 0;
  for (const call of replay.play(withAssistant(source))) {
    count += 1;
    const before = sizeIn(call.view, room);
    const { slots } = call.view;
    const draft = compactor.beforeCall(replay, call);
    const after = sizeIn(call.view, room);
    if (draft) {
      rewrites.push({
        kind: draft.kind === 'prune' ? 'prune' : 'compaction',
        gain: (before - after) / room.available,
        distance: Math.abs(after - room.target) / room.target,
        wastes: after + newestCovered(slots, call.view.floor) <= room.target,
        trims:
          draft.kind === 'baseline' && (draft.body.adopts?.trimmed ?? draft.body.adopts?.turn) !== undefined,
        fitted: before <= room.available,
        ...verbatimIn(call.view),
        room: room.target - FIXED,
      });
    }
    if (!cache) continue;
    const { at, output } = call;
    const request = cacheRequestOf(promptFor(call), { at, output, count: countTokens });
    const base = { hash: 'tools and system', tokens: FIXED };
    const breakpoints = request.breakpoints.map((index) => index + 1);
    requests.push({ ...request, blocks: [base, ...request.blocks], breakpoints });
  }
  const hitRate = cache ? simulateCache(requests, rulesOf(true)).total.hitRate : null;
  return { requests: count, rewrites, hitRate };
}

/** Tokens of the last slots before `floor` that stand or fall together. */
function newestCovered(slots: readonly Slot[], floor: number): number {
  const covered = slots.filter(
    ({ message, layer }) => layer !== 'summary' && (message.seqs.at(-1) ?? Infinity) <= floor,
  );
  const from = covered.findLastIndex(({ message }) => message.role !== 'tool');
  return covered.slice(Math.max(0, from)).reduce((sum, { tokens }) => sum + tokens, 0);
}

function verbatimIn({ slots, tokens }: View): Pick<Rewrite, 'rounds' | 'tokens'> {
  const summary = slots[0]?.layer === 'summary' ? slots[0].tokens : 0;
  const begins = slots.filter(
    ({ message, layer }, at) =>
      layer !== 'summary' &&
      message.role === 'user' &&
      (slots[at - 1]?.message.role !== 'user' || slots[at - 1]?.layer === 'summary'),
  );
  return { rounds: begins.length, tokens: tokens - summary };
}
