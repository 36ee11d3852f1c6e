import type { Context } from 'hono';
import { LOCAL } from '../../library/access/index.ts';
import { agentCard } from '../../doors/a2a/agent-card.ts';
import { canonicalJson } from '../../events/canonical-json.ts';
import { TroupeError } from '../../base/errors.ts';
import type { AgentInfo, Troupe } from '../../library/troupe.ts';
import type { Caller } from '../caller.ts';
import type { RouteServer } from '../route.ts';

/** Throws `agent_unknown`. */
export function agentIn({ agents }: Troupe, id: string): AgentInfo {
  const agent = agents.find((each) => each.id === id);
  if (!agent) throw new TroupeError('agent_unknown', `there is no agent "${id}"`, { agent: id });
  return agent;
}

interface CardRequest {
  context: Context;
  caller: Caller;
  agent: string;
  server: Pick<RouteServer, 'addressOf' | 'version'>;
}

/** The card of an agent, signed, with the public address. */
export function cardOf({ context, caller, agent, server }: CardRequest, options = { isExtended: false }) {
  const { troupe, principal } = caller;
  const info = agentIn(troupe, agent);
  const base = `${server.addressOf(context)}/api/a2a`;
  const { version } = server;
  const place = { url: `${base}/${info.id}`, version, isKeyed: principal.id !== LOCAL.id };
  const card = agentCard(info, place, options);
  const header = { typ: 'JOSE', jku: `${base}/.well-known/jwks.json` };
  return { ...card, signatures: [troupe.cardKey.sign(canonicalJson(card), header)] };
}
