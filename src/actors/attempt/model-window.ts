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

/** Percentage of the available tokens below which an expired cache is no reason to compact. */
export const WORTH_COMPACTING_PERCENT = 40;

/** The defined window, or a smaller one that the provider named in a refusal. */
export function windowFor({ profile }: Pick<AgentRuntime, 'profile'>, { window }: ModelFacts): number {
  return window === null ? profile.contextWindow : Math.min(profile.contextWindow, window);
}

/** Share of a window for the request of a summary. The rest is a margin, because Troupe's count is not the provider's. */
const REQUEST_SHARE = 0.8;

/** Maximum tokens of the request for a summary, in a window that must also hold the answer. */
export function requestTokens(window: number, answerTokens: number): number {
  return Math.floor((window - answerTokens) * REQUEST_SHARE);
}

/** Tokens of the window without the reserved answer. */
export function availableIn(runtime: Pick<AgentRuntime, 'profile'>, model: ModelFacts): number {
  const { maxOutputTokens } = runtime.profile;
  return budgetOf({ window: windowFor(runtime, model), maxOutputTokens }).available;
}

/** The compaction policy, with its token limits scaled down for a small window. */
export function policyFor(runtime: AgentRuntime, model: ModelFacts): CompactionPolicy {
  return scaledPolicy(runtime.policy, availableIn(runtime, model));
}

/** A text that explains why a prompt does not fit, with its room and its largest layers and messages. */
export function nameLargest(run: TurnRun, { tokens, layers }: PromptRecord): string {
  const { live, runtime, model } = run;
  // Computed again, because the prompt may have been built before a refusal named the window.
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
