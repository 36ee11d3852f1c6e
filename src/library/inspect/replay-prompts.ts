import { buildPrompt, createView, forkView, type View } from '../../context/index.ts';
import {
  type ActorAddress,
  type Event,
  eventOf,
  type PromptReceipt,
  type PromptRecord,
  runtimeId,
  type TurnId,
} from '../../events/index.ts';
import type { EngineDeps } from '../../actors/actor/engine-deps.ts';
import { readBaseline } from '../../actors/turn/baseline.ts';
import type { FrozenBaseline, AgentRuntime } from '../../actors/actor/agent-runtime.ts';
import { asSent, baselineOf, readReceipts } from './prompts.ts';
import { readPages, foldInSlices } from '../../actors/log/read-log.ts';
import { answeredStep } from '../../actors/turn/judge-answer.ts';

/** A model call of a turn that has ended. */
export interface ReplayedCall {
  prompt: PromptRecord & { verified: boolean };
  /** The whole prompt. A session receives only the new part; this is everything it should hold. */
  whole: PromptRecord;
  /** Approximate time, ms: the calls of a turn are spread between its logged beginning and end. */
  at: number;
  /** Tokens of the answer, counted at its append; 0 if none was kept. */
  answer: number;
}

/**
 * Every prompt that an agent was sent in a conversation, in order, rendered again in one pass over the log. Memory holds
 * only the view and the current turn, and messages keep their identity from prompt to prompt. Running turns are left out,
 * because the log has their steps only when they end.
 */
export async function* replayPrompts(
  deps: EngineDeps,
  address: ActorAddress,
  runtime: AgentRuntime,
): AsyncGenerator<ReplayedCall> {
  const view = createView(address.agent, deps.secretOf(address));
  let turn: ReplayedTurn | null = null;
  let baseline: FrozenBaseline | null = null;
  for await (const events of readPages(deps.store, address, { after: 0 })) {
    for (const event of events) {
      const receipt = turn && event.turn === turn.id ? answeredBy(event, turn) : undefined;
      if (turn && receipt) {
        const id = baselineOf(receipt);
        if (baseline?.id !== id) baseline = await readBaseline(deps.store, address, runtime, id);
        yield {
          ...render(view, { receipt, baseline, runtime }),
          at: timeOf(turn, receipt.step),
          answer: isAnswer(event) ? event.tokens : 0,
        };
      }
      const folding = foldInSlices(deps.clock, view, event);
      if (folding) await folding;
      if (turn && isEndOf(turn, event)) turn = null;
      const started = eventOf(event, 'turn.started');
      if (started?.author.id === address.agent) turn = await endedTurn(deps, address, started);
    }
  }
}

interface ReplayedTurn {
  id: TurnId;
  receipts: readonly PromptReceipt[];
  /** Number of steps that are rendered, or had no prompt. */
  rendered: number;
  began: number;
  ended: number;
}

/** The turn that this event starts; null if it is still running. */
async function endedTurn(
  deps: EngineDeps,
  address: ActorAddress,
  { turn: id, at }: Event,
): Promise<ReplayedTurn | null> {
  const end = id && (await deps.store.readById(address, runtimeId(id, 'end')));
  if (!id || !end) return null;
  const receipts = await readReceipts(deps, address.tenant, id);
  return { id, receipts, rendered: 0, began: at, ended: end.at };
}

/** The prompt that this event answers, or whose failure it records. */
function answeredBy(event: Event, turn: ReplayedTurn): PromptReceipt | undefined {
  const isLast = event.id === `${turn.id}:reply` || isEndOf(turn, event);
  const index = isLast ? turn.rendered : answeredStep(event);
  if (index === null || index < turn.rendered) return undefined;
  turn.rendered = index + 1;
  return turn.receipts.find(({ step }) => step === index + 1);
}

function isAnswer({ kind }: Event): boolean {
  return kind === 'step' || kind === 'message';
}

function isEndOf({ id }: ReplayedTurn, event: Event): boolean {
  return event.id === `${id}:end`;
}

function timeOf({ began, ended, receipts }: ReplayedTurn, step: number): number {
  const steps = receipts.at(-1)?.step ?? 1;
  return Math.round(began + ((ended - began) * (step - 1)) / steps);
}

function render(
  view: View,
  { receipt, baseline, runtime }: { receipt: PromptReceipt; baseline: FrozenBaseline; runtime: AgentRuntime },
): Pick<ReplayedCall, 'prompt' | 'whole'> {
  const fork = forkView(view);
  const whole = buildPrompt({
    view: fork,
    conversation: receipt.conversation,
    agent: runtime.profile,
    baseline: { ...baseline, source: baseline.id },
    step: receipt.step,
  });
  const prompt = asSent(whole, fork, receipt);
  const { turn, step } = receipt;
  return { prompt, whole: receipt.delta ? { ...whole, turn, step } : prompt };
}
