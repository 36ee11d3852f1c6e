import { createView, foldAhead, foldEvent, beginTurn } from '../src/context/index.ts';
import type { Event, PromptRecord } from '../src/events/index.ts';
import { bytes, invalidities, misplaced, visibleSeqs } from '../test/support/check-prompt.ts';
import { SECRET } from '../test/support/log-player.ts';
import { Compactor, windowFor } from './compactor.ts';
import { type ModelCall, promptFor, Replay, withAssistant } from './replay.ts';

export interface CompactedCount {
  requests: number;
  prunes: number;
  compactions: number;
  coldBuilds: number;
  /** Requests with a problem. */
  faulty: number;
  problems: string[];
}

/** Shares of the tokens of a log, so that every log is compacted several times. */
const WINDOW_SHARES = [1 / 8, 1 / 3];
const LEAST_WINDOW = 700;
const COLD_EVERY = 10;

/** Plays a log as turns of the agents in windows too small for it, and checks every request. */
export function checkCompacted(
  name: string,
  log: readonly Event[],
  agents: readonly string[],
  count: CompactedCount,
): void {
  const tokens = log.reduce((sum, event) => sum + event.tokens, 0);
  for (const share of WINDOW_SHARES) {
    const window = Math.max(LEAST_WINDOW, Math.floor(tokens * share));
    const replay = new Replay((n) => agents[(n * 7 + (n % 5)) % agents.length] ?? '');
    const compactor = new Compactor(windowFor({ window, fixed: 50 }));
    /** By turn: the messages that it answers. */
    const inputs = new Map<string, readonly number[]>();
    for (const call of replay.play(withAssistant(log))) {
      inputs.set(call.turn.id, call.turn.inputs);
      const draft = compactor.beforeCall(replay, call);
      if (draft?.kind === 'prune') count.prunes += 1;
      else if (draft) count.compactions += 1;
      count.requests += 1;
      const problems = problemsOf(replay, call, inputs);
      if (count.requests % COLD_EVERY === 0) {
        count.coldBuilds += 1;
        if (!isSameWhenCold(replay, call)) problems.push('other bytes when cold');
      }
      if (problems.length > 0) count.faulty += 1;
      const where = `${name} in ${window}, ${call.turn.id} step ${call.step}`;
      count.problems.push(...problems.map((problem) => `${where}: ${problem}`));
    }
  }
}

function problemsOf(
  { log }: Replay,
  call: ModelCall,
  inputs: ReadonlyMap<string, readonly number[]>,
): string[] {
  const prompt = promptFor(call);
  const { upTo } = call.turn;
  const isCovered = coveredIn(prompt, inputs);
  const visible = visibleSeqs(log.slice(0, upTo), call.agent).filter((seq) => !isCovered(seq));
  const messages = prompt.messages.map((m) => ({ ...m, seqs: m.seqs.filter((seq) => seq <= upTo) }));
  return [...invalidities(messages), ...misplaced(messages, visible)];
}

/**
 * Returns whether a summary replaces an event: everything up to its `upTo`, except the inputs of the turn that
 * adopted it.
 */
export function coveredIn(
  { cuts }: PromptRecord,
  inputs: ReadonlyMap<string, readonly number[]>,
): (seq: number) => boolean {
  const adopted = cuts.findLast(({ compaction }) => compaction);
  const turn = adopted ? /^(.*):relief:/.exec(adopted.event)?.[1] : undefined;
  const answering = new Set(inputs.get(turn ?? ''));
  return (seq) => seq <= (adopted?.upTo ?? 0) && !answering.has(seq);
}

/** True if the log and the turn's output alone give the same request. */
function isSameWhenCold({ log }: Replay, call: ModelCall): boolean {
  const { agent, turn, outputs } = call;
  const view = createView(agent, SECRET);
  for (const event of log) {
    if (event.turn === turn.id) break;
    foldEvent(view, event);
  }
  for (const event of log) if (event.kind === 'compaction') view.compactions.set(event.id, event.body);
  beginTurn(view, turn);
  for (const draft of outputs) foldAhead(view, draft, () => 0);
  const cold = promptFor({ ...call, view });
  return bytes(cold.messages).join('\n') === bytes(promptFor(call).messages).join('\n');
}
