import { windowOf } from '../../context/index.ts';
import { TroupeError } from '../../base/errors.ts';
import { type RerunChange, unknownName } from '../../events/index.ts';
import { priceOf } from '../../providers/prices.ts';
import type { AgentRegistry, AgentRuntime } from '../engine/agent-runtime.ts';

type ModelChange = Extract<RerunChange, { kind: 'model' }>;

/**
 * The agent with another model. Settings of a provider are those of an agent that has it: of one with the same model if
 * there is one. Throws `event_invalid`.
 */
export function withModel(agents: AgentRegistry, runtime: AgentRuntime, change: ModelChange): AgentRuntime {
  const { model, provider = runtime.profile.provider } = change;
  const having = [...agents.values()].filter(({ profile }) => profile.provider === provider);
  const same = having.find(({ profile }) => profile.model === model);
  const like = same ?? (provider === runtime.profile.provider ? runtime : having[0]);
  if (!like) {
    const known = [...new Set([...agents.values()].map(({ profile }) => profile.provider))];
    const message = unknownName(`no agent here has the provider "${provider}"`, provider, known);
    throw new TroupeError('event_invalid', message, { path: 'change.provider' });
  }
  if (runtime.profile.peers === 'system' && !like.provider.capabilities.interleavedSystem) {
    const message = `@${runtime.profile.id} has other agents' words in system messages, which ${provider} does not take between others`;
    throw new TroupeError('event_invalid', message, { path: 'change.provider' });
  }
  const contextWindow =
    same?.profile.contextWindow ?? windowOf(model)?.window ?? runtime.profile.contextWindow;
  return {
    ...runtime,
    provider: like.provider,
    price: same ? same.price : priceOf(model),
    profile: { ...runtime.profile, provider, model, contextWindow },
  };
}
