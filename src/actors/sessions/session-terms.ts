import type { SessionTerms } from '../../context/index.ts';
import type { Session } from '../../events/index.ts';
import type { AgentRuntime } from '../engine/agent-runtime.ts';

/** What this session must match to be used by this member. Who only looks has no provider, and asks of no machine. */
export function termsFor(
  { profile, provider, keepsCompacted }: AgentRuntime,
  baseline: string,
  { home }: Session,
): SessionTerms {
  return {
    provider: profile.provider,
    model: profile.model,
    home: provider.home ?? home,
    baseline,
    rewind: provider.capabilities.rewind,
    keepsCompacted,
  };
}
