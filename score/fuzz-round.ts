import { invalidities, misplaced, visibleSeqs } from '../test/support/check-prompt.ts';
import { type Line, linesOf, type Part } from '../src/context/slot.ts';
import type { View } from '../src/context/index.ts';
import { PLACEHOLDER_TOKENS } from '../src/context/compaction/prune.ts';
import { isWithin, sizeIn } from '../src/context/compaction/policy.ts';
import type { EventDraft } from '../src/events/index.ts';
import { below, between, pick, type Random } from '../sim/random.ts';
import { randomLog } from './random-log.ts';
import { coveredIn } from './compacted-log.ts';
import { Compactor, windowFor } from './compactor.ts';
import { type ModelCall, promptFor, Replay } from './replay.ts';

/** How a random conversation in a random window came out. */
export interface RoundResult {
  outcome: 'untouched' | 'pruned' | 'compacted' | 'overflow';
  calls: number;
  /** Climbs of the ladder: all, those that could do nothing, and for one call at most. */
  climbs: number;
  idleClimbs: number;
  mostClimbs: number;
  slowestClimbMs: number;
  /** Overflows although what may never be cut would have fitted. */
  undue: string[];
  problems: string[];
}

const REFUSED_SHARE = 0.04;
/** Of the window that we know, what the provider that refuses really has. */
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
    climbs: 0,
    idleClimbs: 0,
    mostClimbs: 0,
    slowestClimbMs: 0,
    undue: [],
    problems: [],
  };
  for (const call of replay.play(randomLog(random, window))) {
    inputs.set(call.turn.id, call.turn.inputs);
    result.calls += 1;
    const before = result.climbs;
    if (compactor.isDue(call)) runStrategies(result, () => compactor.beforeCall(replay, call));
    let { available } = compactor.window.room;
    if (isWithin(call.view, compactor.window.room, available) && random() < REFUSED_SHARE) {
      available = Math.floor(available * REAL_SHARE);
      runStrategies(result, () => compactor.afterRefusal(replay, call, available));
    }
    result.mostClimbs = Math.max(result.mostClimbs, result.climbs - before);
    result.problems.push(...problemsOf(replay, call, inputs));
    if (isWithin(call.view, compactor.window.room, available)) continue;
    const least = neverCut(call.view, fixed, available);
    if (least <= available * SURE_SHARE) {
      result.undue.push(`${sizeIn(call.view, compactor.window.room)} of ${available}, never cut ${least}`);
    }
    return { ...result, outcome: 'overflow' };
  }
  return result;
}

function runStrategies(result: RoundResult, runCompaction: () => EventDraft | null): void {
  const start = performance.now();
  const draft = runCompaction();
  result.climbs += 1;
  if (!draft) result.idleClimbs += 1;
  result.slowestClimbMs = Math.max(result.slowestClimbMs, performance.now() - start);
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

/** As the ladder has it: what a summary has at least, and what of the newest steps stays beside the last one. */
const SUMMARY_SHARE = 0.1;
const LEAST_SUMMARY_TOKENS = 150;
const STEPS_SHARE = 0.15;
/** A result that is hardly larger than its placeholder is left alone. */
const SMALL_RESULT_TOKENS = 2 * PLACEHOLDER_TOKENS;
/** Counts are estimates: the last resort aims at less than the whole window. */
const SURE_SHARE = 0.95;

/**
 * The baseline, a summary, what the turn is to answer, its early steps where they are one text already, and its newest
 * steps, large results as placeholders. All else can be left out.
 */
function neverCut({ slots, turn }: View, fixed: number, available: number): number {
  let tokens = fixed + Math.max(LEAST_SUMMARY_TOKENS, Math.floor(available * SUMMARY_SHARE));
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

/** With the frame of the message, its live block among it. */
function askedTokens(part: Part, tokens: number, inputs: ReadonlySet<number>): number {
  const lines = linesOf(part);
  const asked = lines.filter(({ seq }) => inputs.has(seq));
  if (asked.length === 0) return 0;
  const words = (some: readonly Line[]) => some.reduce((sum, line) => sum + line.tokens, 0);
  return tokens - words(lines) + words(asked);
}
