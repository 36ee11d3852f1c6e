import {
  budgetOf,
  type CompactionPolicy,
  type ModelFacts,
  scaledPolicy,
  type Slot,
} from '../../context/index.ts';
import type { PromptRecord } from '../../events/index.ts';
import type { AgentRuntime } from '../actor/agent-runtime.ts';
import type { TurnRun } from './turn-run.ts';

/** Share of the available room below which a cold cache is no reason to compact. */
export const WORTH_COMPACTING_PERCENT = 40;

/** The window as defined, or a smaller one that the model was found to have. */
export function windowFor({ profile }: Pick<AgentRuntime, 'profile'>, { window }: ModelFacts): number {
  return window === null ? profile.contextWindow : Math.min(profile.contextWindow, window);
}

/** The rest is a margin: our count of tokens is not the provider's. */
const REQUEST_SHARE = 0.8;

/** Tokens for the request of a summary, in a window that must also hold the answer. */
export function requestTokens(window: number, answerTokens: number): number {
  return Math.floor((window - answerTokens) * REQUEST_SHARE);
}

/** Tokens that the window leaves beside the answer. */
export function availableIn(runtime: Pick<AgentRuntime, 'profile'>, model: ModelFacts): number {
  const { maxOutputTokens } = runtime.profile;
  return budgetOf({ window: windowFor(runtime, model), maxOutputTokens }).available;
}

/** Limits in tokens are scaled down to what a small window leaves. */
export function policyFor(runtime: AgentRuntime, model: ModelFacts): CompactionPolicy {
  return scaledPolicy(runtime.policy, availableIn(runtime, model));
}

/** Explains why a prompt does not fit: the room, and its largest layers and messages. */
export function nameLargest(run: TurnRun, { tokens, layers }: PromptRecord): string {
  const { live, runtime, model } = run;
  // The prompt may have been built before its refusal named the window.
  const { maxOutputTokens } = runtime.profile;
  const { window, reserved, available } = budgetOf({ window: windowFor(runtime, model), maxOutputTokens });
  const parts = layers.toSorted((a, b) => b.tokens - a.tokens).slice(0, 3);
  const largest = live.view.slots.toSorted((a, b) => b.tokens - a.tokens).slice(0, 2);
  return [
    `the prompt has about ${tokens.estimate} tokens; a window of ${window} less ${reserved} reserved for the answer leaves ${available}`,
    `largest layers: ${parts.map(({ name, tokens: size }) => `${name} ${size}`).join(', ')}`,
    `largest messages: ${largest.map(nameOf).join(', ')}`,
    run.deps.features.compaction
      ? 'what is to be answered, the newest results and the instructions are never cut'
      : 'nothing is compacted here (context.compaction)',
  ].join('. ');
}

function nameOf({ message, tokens, layer }: Slot): string {
  const [first] = message.seqs;
  const which = first === undefined ? layer : `event ${first}`;
  return `${which} (${message.role}) ${tokens}`;
}
