import type { AgentInfo } from '../../library/troupe.ts';
import { PROTOCOL_VERSION } from './protocol.ts';

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
