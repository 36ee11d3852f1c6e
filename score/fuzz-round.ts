import { invalidities, misplaced, visibleSeqs } from '../test/support/check-prompt.ts';
import { type Line, linesOf, type Part } from '../src/context/view/view.ts';
import type { View } from '../src/context/index.ts';
import { placesIn } from '../src/context/compaction/plan.ts';
import { PLACEHOLDER_TOKENS } from '../src/context/compaction/prune.ts';
import { isWithin, sizeIn } from '../src/context/compaction/policy.ts';
import type { EventDraft } from '../src/events/index.ts';
import { below, between, pick, type Random } from '../sim/random.ts';
import { randomLog } from './random-log.ts';
import { coveredIn } from './compacted-log.ts';
import { Compactor, windowFor } from './compactor.ts';
import { type ModelCall, promptFor, Replay } from './replay.ts';

/** The result of a random conversation in a random window. */
export interface RoundResult {
  outcome: 'untouched' | 'pruned' | 'compacted' | 'overflow';
  calls: number;
  /** Compactions tried: in total, without effect, and for one request at most. */
  compactions: number;
  idleCompactions: number;
  mostCompactions: number;
  slowestMs: number;
  /** Overflows although the part that must be kept would have fitted. */
  avoidable: string[];
  problems: string[];
}

const REFUSED_SHARE = 0.04;
/** Share of the nominal window that a refusing provider really has. */
const REAL_SHARE = 0.85;

export function playRound(random: Random): RoundResult {
  const magnitude = random() < 0.02 ? between(random, 4, 5.3) : between(random, 3.3, 4);
  const window = Math.floor(10 ** magnitude);
  const maxOutputTokens = below(random, window / 2);
  const fixed = random() < 0.06 ? below(random, window * 2) : below(random, Math.max(1, window / 10));
  const compactor = new Compactor(windowFor({ window, maxOutputTokens, fixed }));
  const agents = ['ada', 'bob', 'cyd'].slice(0, 1 + below(random, 3));
  const replay = new Replay(() => pick(random, agents));
  const inputs = new Map<string, readonly number[]>();
  const result: RoundResult = {
    outcome: 'untouched',
    calls: 0,
    compactions: 0,
    idleCompactions: 0,
    mostCompactions: 0,
    slowestMs: 0,
    avoidable: [],
    problems: [],
  };
  for (const call of replay.play(randomLog(random, window))) {
    inputs.set(call.turn.id, call.turn.inputs);
    result.calls += 1;
    // As in a turn, where the prompt is built before its size is judged: calls without a result get one.
    promptFor(call);
    const before = result.compactions;
    if (compactor.isDue(call)) runStrategies(result, () => compactor.beforeCall(replay, call));
    let { available } = compactor.window.room;
    if (isWithin(call.view, compactor.window.room, available) && random() < REFUSED_SHARE) {
      available = Math.floor(available * REAL_SHARE);
      runStrategies(result, () => compactor.afterRefusal(replay, call, available));
    }
    result.mostCompactions = Math.max(result.mostCompactions, result.compactions - before);
    result.problems.push(...problemsOf(replay, call, inputs));
    if (isWithin(call.view, compactor.window.room, available)) continue;
    const least = leastTokens(call.view, fixed, available);
    if (least <= available * SURE_SHARE) {
      result.avoidable.push(
        `${sizeIn(call.view, compactor.window.room)} of ${available}, must keep ${least}`,
      );
    }
    return { ...result, outcome: 'overflow' };
  }
  return result;
}

function runStrategies(result: RoundResult, runCompaction: () => EventDraft | null): void {
  const start = performance.now();
  const draft = runCompaction();
  result.compactions += 1;
  if (!draft) result.idleCompactions += 1;
  result.slowestMs = Math.max(result.slowestMs, performance.now() - start);
  if (draft?.kind === 'baseline') result.outcome = 'compacted';
  else if (draft && result.outcome === 'untouched') result.outcome = 'pruned';
}

function problemsOf(
  { log }: Replay,
  call: ModelCall,
  inputs: ReadonlyMap<string, readonly number[]>,
): string[] {
  const prompt = promptFor(call);
  const end = call.turn.upTo;
  const isCovered = coveredIn(prompt, inputs);
  const visible = visibleSeqs(log.slice(0, end), call.agent).filter((seq) => !isCovered(seq));
  const messages = prompt.messages.map((m) => ({ ...m, seqs: m.seqs.filter((seq) => seq <= end) }));
  return [...invalidities(messages), ...misplaced(messages, visible)];
}

/**
 * As in the compaction strategies: the minimum size of a summary, and the share of the newest steps kept beside the
 * last one.
 */
const SUMMARY_SHARE = 0.1;
const LEAST_SUMMARY_TOKENS = 150;
const STEPS_SHARE = 0.15;
/** A result hardly larger than its placeholder is not pruned. */
const SMALL_RESULT_TOKENS = 2 * PLACEHOLDER_TOKENS;
/** Counts are estimates, so the last strategy aims below the whole window. */
const SURE_SHARE = 0.95;

/**
 * Tokens that cannot be dropped: the baseline, a summary, the inputs of the turn, its merged early steps, and its
 * newest steps with large results as placeholders.
 */
function leastTokens(view: View, fixed: number, available: number): number {
  const { slots, turn } = view;
  let tokens = fixed + leastSummary(view, available);
  let ofSteps = 0;
  const last = slots.findLastIndex(({ message }) => message.role === 'assistant');
  for (const [at, { part, tokens: size, message, step, event }] of [...slots.entries()].toReversed()) {
    const least = message.role === 'tool' ? Math.min(size, SMALL_RESULT_TOKENS) : size;
    if (part) tokens += askedTokens(part, size, turn?.inputs ?? new Set());
    else if (step?.turn !== turn?.id) continue;
    else if (message.role === 'user' && event === null) tokens += size;
    else if (at >= last || ofSteps + least <= available * STEPS_SHARE) {
      ofSteps += least;
      tokens += least;
    }
  }
  return tokens;
}

/** Without events that a new summary could cover, the present one stays as it is. */
function leastSummary(view: View, available: number): number {
  const present = view.slots.find(({ layer }) => layer === 'summary')?.tokens;
  if (present !== undefined && placesIn(view).length === 0) return present;
  return Math.max(LEAST_SUMMARY_TOKENS, Math.floor(available * SUMMARY_SHARE));
}

/** Includes the frame of the message and its live block. */
function askedTokens(part: Part, tokens: number, inputs: ReadonlySet<number>): number {
  const lines = linesOf(part);
  const asked = lines.filter(({ seq }) => inputs.has(seq));
  if (asked.length === 0) return 0;
  const words = (some: readonly Line[]) => some.reduce((sum, line) => sum + line.tokens, 0);
  return tokens - words(lines) + words(asked);
}
