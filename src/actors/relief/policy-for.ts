import { budgetOf, type ModelFacts, type ReliefPolicy, scaledPolicy } from '../../context/index.ts';
import type { Member } from '../member.ts';

/** Limits in tokens are scaled down to what a small window leaves. */
export function policyFor({ profile, policy }: Member, { window }: ModelFacts): ReliefPolicy {
  const { contextWindow, maxOutputTokens } = profile;
  const known = window === null ? contextWindow : Math.min(contextWindow, window);
  return scaledPolicy(policy, budgetOf({ window: known, maxOutputTokens }).available);
}
