import { computed } from '@preact/signals';
import type { AgentView } from '../../../src/library/projection/model.ts';
import type { PromptTokens } from '../../../src/events/index.ts';
import { actors } from './live.ts';
import { isPast } from './past.ts';
import { agentsByNeed, selectedAgent } from './selection.ts';

const known = computed(() => new Map(actors.value.map((actor) => [actor.agent, actor])));

/**
 * Window usage at the last model call of the agent's last turn. The server reports it shortly after the end of a turn; until
 * then the previous usage is shown. Null if unknown, as in the past of an agent that has taken turns since.
 */
export function usageOf({ id, lastTurn, turn }: AgentView): PromptTokens | null {
  const actor = known.value.get(id);
  if (!actor || (isPast.value && (actor.lastTurn ?? actor.turn) !== (lastTurn ?? turn))) return null;
  return actor.tokens;
}

/** The usage of the selected agent, else of the agent with the fullest window. */
export const usageShown = computed<{ agent: AgentView; tokens: PromptTokens } | null>(() => {
  const chosen = selectedAgent.value;
  const all = [...(chosen ? [chosen] : []), ...agentsByNeed.value];
  const used = all.flatMap((agent) => {
    const tokens = usageOf(agent);
    return tokens ? [{ agent, tokens }] : [];
  });
  if (chosen && used[0]?.agent.id === chosen.id) return used[0];
  return used.toSorted((a, b) => b.tokens.percent - a.tokens.percent)[0] ?? null;
});
