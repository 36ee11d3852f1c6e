import type { Context } from 'hono';
import type { Caller, DoorServer } from '../http.ts';
import { type AgentInfo, LOCAL, type Troupe, TroupeError, canonicalJson } from '../troupe.ts';
import { PROTOCOL_VERSION } from './protocol.ts';

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
  server: Pick<DoorServer, 'addressOf' | 'version'>;
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

interface CardPlace {
  /** URL of the agent. */
  url: string;
  /** Version of Troupe. */
  version: string;
  /** Callers need a key. */
  isKeyed: boolean;
}

const INPUT_MODES = ['text/plain', 'application/json', 'image/png', 'image/jpeg', 'image/gif', 'image/webp'];
const OUTPUT_MODES = ['text/plain', 'application/json'];

type Skill = { id: string; name: string; description: string; tags: string[] };

/**
 * The card of an agent. It has no empty values: they are left out of what is signed, and so must be out of the card.
 * `isExtended`: with the tools of the agent.
 */
export function agentCard(agent: AgentInfo, place: CardPlace, { isExtended = false } = {}): object {
  const { id, name, role, capabilities, tools } = agent;
  const { url, version, isKeyed } = place;
  const description = agent.description || name;
  const skills: Skill[] = [{ id, name, description, tags: [role, ...capabilities] }];
  if (isExtended)
    for (const tool of tools)
      skills.push({ id: `${id}.${tool}`, name: tool, description: `Calls the tool ${tool}`, tags: ['tool'] });
  return {
    name,
    description,
    version,
    supportedInterfaces: ['JSONRPC', 'HTTP+JSON'].map((protocolBinding) => ({
      url,
      protocolBinding,
      protocolVersion: PROTOCOL_VERSION,
    })),
    capabilities: { streaming: true, pushNotifications: true, extendedAgentCard: true },
    ...(isKeyed && {
      securitySchemes: { key: { httpAuthSecurityScheme: { scheme: 'Bearer' } } },
      securityRequirements: [{ schemes: { key: { list: ['read', 'write'] } } }],
    }),
    defaultInputModes: INPUT_MODES,
    defaultOutputModes: OUTPUT_MODES,
    skills,
  };
}
