import { budgetOf, type ModelFacts, type ReliefPolicy, scaledPolicy } from '../../context/index.ts';
import type { Member } from '../engine/member.ts';

/** The window as defined, or a smaller one that the model was found to have. */
export function windowFor({ profile }: Pick<Member, 'profile'>, { window }: ModelFacts): number {
  return window === null ? profile.contextWindow : Math.min(profile.contextWindow, window);
}

/** Tokens that the window leaves beside the answer. */
export function availableIn(member: Pick<Member, 'profile'>, model: ModelFacts): number {
  const { maxOutputTokens } = member.profile;
  return budgetOf({ window: windowFor(member, model), maxOutputTokens }).available;
}

/** Limits in tokens are scaled down to what a small window leaves. */
export function policyFor(member: Member, model: ModelFacts): ReliefPolicy {
  return scaledPolicy(member.policy, availableIn(member, model));
}
