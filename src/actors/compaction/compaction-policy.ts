import { budgetOf, type CompactionPolicy, type ModelFacts, scaledPolicy } from '../../context/index.ts';
import type { AgentRuntime } from '../engine/agent-runtime.ts';

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
