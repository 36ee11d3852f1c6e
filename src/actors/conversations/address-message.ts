import { TroupeError } from '../../base/errors.ts';
import { type AgentId, type Author, MAX_RECIPIENTS, nearestName } from '../../events/index.ts';
import type { AgentRegistry } from '../engine/agent-runtime.ts';

/** The agents that a message addresses. Only `to` counts; names in the text never do. */
export function addressees(
  agents: AgentRegistry,
  message: { author: Author; to?: readonly string[] | undefined; replyTo?: string | undefined },
  fallback: AgentId | null,
): AgentId[] {
  const named = message.to ?? [];
  if (named.length > MAX_RECIPIENTS) {
    throw new TroupeError('event_invalid', `to: at most ${MAX_RECIPIENTS} recipients, got ${named.length}`, {
      path: 'to',
    });
  }
  const found = new Set<AgentId>();
  for (const name of named) found.add(resolveAgent(agents, name));
  if (found.size > 0) return [...found];
  const topLevel = message.author.kind === 'user' && message.replyTo === undefined;
  return topLevel && fallback ? [fallback] : [];
}

/** An agent by id or pubkey. Throws `agent_unknown` with the known ones and the nearest name. */
export function resolveAgent(agents: AgentRegistry, name: string): AgentId {
  const plain = name.startsWith('@') ? name.slice(1) : name;
  const direct = agents.get(plain as AgentId);
  if (direct) return direct.profile.id;
  for (const runtime of agents.values()) if (runtime.pubkey === plain) return runtime.profile.id;
  const known = [...agents.keys()];
  const nearest = nearestName(plain, known);
  const hint = nearest ? ` Did you mean "${nearest}"?` : '';
  throw new TroupeError(
    'agent_unknown',
    `there is no agent "${plain}".${hint} Known: ${known.slice(0, 50).join(', ')}.`,
    { agent: plain, nearest, known: known.slice(0, 50) },
  );
}
