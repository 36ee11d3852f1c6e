import { LRUCache } from 'lru-cache';
import { type ConversationDeps, createParticipantsCache } from '../../actors/conversations/messages.ts';
import type { AgentRegistry, AgentRuntime } from '../../actors/actor/agent-runtime.ts';
import { TroupeError } from '../../base/errors.ts';
import { DEFAULT_TENANT, TenantId } from '../../events/index.ts';
import type { AgentInfo, Troupe } from '../troupe.ts';
import { mintId } from './parse-input.ts';
import type { FacadeParts } from './tenant-context.ts';
import { tenantFacade } from './tenant-facade.ts';
import { Watchers } from './watchers.ts';

/** Maximum of cached facades. They have no state, so a new one costs little. */
const MAX_TENANT_FACADES = 1_000;

/**
 * The public interface of a running troupe. It checks input, resolves names, and leaves the work to the engine. One engine
 * serves all tenants. Each facade belongs to one tenant, and none of its methods reaches another.
 */
export function createTroupeFacade(parts: FacadeParts): Troupe {
  const { deps, engine, trust = null, fallback } = parts;
  const closed = new AbortController();
  let closing: Promise<void> | null = null;
  async function close(): Promise<void> {
    closed.abort();
    await engine.stop();
    await parts.release();
  }

  const conversations: ConversationDeps = {
    deps,
    engine,
    participantsCache: createParticipantsCache(deps.log, deps.checkpoints),
    trust,
    fallback,
    sticks: parts.sticks,
    router: parts.messageRouter ?? null,
    newId: mintId,
  };
  const shared = {
    parts,
    conversations,
    watchers: new Watchers({ ...parts, log: deps.log, onWarning: deps.onWarning }),
    agents: [...deps.agents.values()].map((runtime) => agentInfo(deps.agents, runtime)),
    closed: closed.signal,
    forTenant,
  };
  const facades = new LRUCache<TenantId, Troupe>({ max: MAX_TENANT_FACADES });

  function forTenant(name: string): Troupe {
    const tenant = parseTenant(name);
    const known = facades.get(tenant);
    if (known) return known;
    const isRoot = tenant === DEFAULT_TENANT;
    const closeTenant = () => (isRoot ? (closing ??= close()) : Promise.resolve());
    const facade = tenantFacade({ ...shared, tenant, close: closeTenant });
    facades.set(tenant, facade);
    return facade;
  }
  return forTenant(DEFAULT_TENANT);
}

/** Its tools are those that it has when they are read: those of a server may come later. */
function agentInfo(agents: AgentRegistry, { profile, capabilities, pubkey, price }: AgentRuntime): AgentInfo {
  const { id, name, role, description, provider, model } = profile;
  return {
    id,
    name,
    role,
    description,
    capabilities,
    provider,
    model,
    pubkey,
    price,
    get tools() {
      return [...(agents.get(id)?.tools.keys() ?? [])];
    },
  };
}

function parseTenant(text: string): TenantId {
  const parsed = TenantId.safeParse(text);
  if (parsed.success) return parsed.data;
  throw new TroupeError('event_invalid', `"${text}" is not a valid tenant id`, { path: 'tenant' });
}
