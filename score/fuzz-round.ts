import { invalidities, misplaced, visibleSeqs } from '../test/support/check-prompt.ts';
import { logged } from '../test/support/log-player.ts';
import { linesOf } from '../src/context/slot.ts';
import type { View } from '../src/context/index.ts';
import { PLACEHOLDER_TOKENS } from '../src/context/rewrite/prune-slots.ts';
import { isWithin, sizeIn } from '../src/context/relief/room.ts';
import type { Event, EventDraft } from '../src/events/index.ts';
import { below as upTo, between, pick, type Random } from '../sim/random.ts';
import { coveredIn } from './relieved-log.ts';
import { Relief, windowFor } from './relieve-call.ts';
import { type ModelCall, promptFor, Replay } from './replay.ts';

/** How a random conversation in a random window came out. */
export interface RoundResult {
  outcome: 'untouched' | 'pruned' | 'compacted' | 'overflow';
  calls: number;
  /** Climbs of the ladder for one call, at most; a provider's refusal allows a second. */
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
  const maxOutputTokens = upTo(random, window / 2);
  const fixed = random() < 0.06 ? upTo(random, window * 2) : upTo(random, Math.max(1, window / 10));
  const relief = new Relief(windowFor({ window, maxOutputTokens, fixed }));
  const agents = ['ada', 'bob', 'cyd'].slice(0, 1 + upTo(random, 3));
  const replay = new Replay(() => pick(random, agents));
  const inputs = new Map<string, readonly number[]>();
  const result: RoundResult = {
    outcome: 'untouched',
    calls: 0,
    mostClimbs: 0,
    slowestClimbMs: 0,
    undue: [],
    problems: [],
  };
  for (const call of replay.play(randomLog(random, window))) {
    inputs.set(call.turn.id, call.turn.inputs);
    result.calls += 1;
    const before = relief.climbs;
    climb(result, () => relief.beforeCall(replay, call));
    let { available } = relief.window.room;
    if (isWithin(call.view, relief.window.room, available) && random() < REFUSED_SHARE) {
      available = Math.floor(available * REAL_SHARE);
      climb(result, () => relief.afterRefusal(replay, call, available));
    }
    result.mostClimbs = Math.max(result.mostClimbs, relief.climbs - before);
    result.problems.push(...problemsOf(replay, call, inputs));
    if (isWithin(call.view, relief.window.room, available)) continue;
    const least = neverCut(call.view, fixed);
    if (least <= available) {
      result.undue.push(`${sizeIn(call.view, relief.window.room)} of ${available}, never cut ${least}`);
    }
    return { ...result, outcome: 'overflow' };
  }
  return result;
}

function climb(result: RoundResult, relieve: () => EventDraft | null): void {
  const start = performance.now();
  const draft = relieve();
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

/** The baseline, what the turn is to answer, and its last step with its results as placeholders. */
function neverCut({ slots, turn }: View, fixed: number): number {
  let tokens = fixed;
  for (const { part, tokens: size } of slots) {
    if (!part) continue;
    const asked = linesOf(part).filter(({ seq }) => turn?.inputs.has(seq));
    const words = linesOf(part).reduce((sum, line) => sum + line.tokens, 0);
    // The frame of the message, its live block among it, stays with what is asked in it.
    if (asked.length > 0 || part.live)
      tokens += size - words + asked.reduce((sum, line) => sum + line.tokens, 0);
  }
  const last = slots.findLastIndex(({ message, step }) => message.role === 'assistant' && step?.turn === turn?.id);
  if (last === -1) return tokens;
  return slots
    .slice(last)
    .reduce(
      (sum, { message, tokens: size }) =>
        sum + (message.role === 'tool' ? Math.min(size, PLACEHOLDER_TOKENS) : size),
      tokens,
    );
}

const WORDS = [
  'read ',
  'the file ',
  'src/context/view.ts ',
  'must never be lost. ',
  'TypeError: x is not a function\n',
  'order #W2378156 ',
  '\n\n- [ ] write it down\n',
  'and then? ',
  'что дальше? ',
  '🙂👩‍👩‍👧 ',
  '<msg 1234abcd>',
  'a'.repeat(200),
];

/** Sizes are spread evenly over their magnitudes, and some go far beyond the window. */
function randomLog(random: Random, window: number): Event[] {
  const log: Event[] = [];
  const add = (draft: Pick<EventDraft, 'kind' | 'author' | 'body'>) => {
    const seq = log.length + 1;
    const pause = random() < 0.1 ? 3_600_000 : 10_000;
    log.push(logged({ id: `e${seq}`, to: [], ...draft } as unknown as EventDraft, seq, (log.at(-1)?.at ?? 0) + pause));
  };
  const user = { kind: 'user' as const, id: 'u', name: 'Uma' };
  const agent = { kind: 'agent' as const, id: 'assistant', name: 'assistant' };
  const text = (most: number) => randomText(random, Math.floor(10 ** between(random, 0.5, Math.log10(most * 4))));
  const huge = () => (random() < 0.05 ? window * 4 : window / 3);
  const exchanges = 1 + upTo(random, 3);
  for (let exchange = 0; exchange < exchanges; exchange++) {
    for (let said = upTo(random, 3); said >= 0; said--)
      add({ author: user, kind: 'message', body: { content: text(random() < 0.03 ? window * 2 : window / 4) } });
    for (let index = upTo(random, 3) - 1; index >= 0; index--) {
      const calls = Array.from({ length: 1 + upTo(random, 3) }, (_, at) => ({
        id: `k${log.length}-${at}`,
        name: pick(random, ['read', 'bash', 'todo_write']),
        args: JSON.stringify({ path: text(40) }),
      }));
      add({ author: agent, kind: 'step', body: { index, content: random() < 0.5 ? '' : text(60), calls } });
      for (const { id, name } of calls) {
        if (random() < 0.04) continue;
        const outcome = random() < 0.15 ? 'failed' : 'done';
        add({ author: agent, kind: 'tool.result', body: { call: id, name, outcome, content: text(huge()) } });
      }
    }
    if (random() < 0.85) add({ author: agent, kind: 'message', body: { content: text(huge()) } });
  }
  return log;
}

function randomText(random: Random, length: number): string {
  let text = 'w';
  while (text.length < length) {
    const word = pick(random, WORDS);
    text += word.repeat(1 + upTo(random, Math.max(1, (length - text.length) / (word.length * 4))));
  }
  return text.slice(0, length).trim() || 'w';
}
