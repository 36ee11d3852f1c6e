import type { MessageRouter } from '../actors/conversations/conversation-deps.ts';
import type { AgentRegistry } from '../actors/engine/agent-runtime.ts';
import { routeBy } from '../routing/route.ts';
import type { RoutingSettings } from '../routing/routing-settings.ts';

/** The routing of a definition among its agents. */
export function messageRouter(
  settings: RoutingSettings | undefined,
  company: AgentRegistry,
): MessageRouter | null {
  if (!settings) return null;
  const agents = [...company.values()].map(({ profile, capabilities }) => {
    const { id, role, description } = profile;
    return { id, role, description, capabilities };
  });
  return {
    by: settings.by,
    find: (message, place) => routeBy(settings, message, { ...place, agents }),
  };
}
