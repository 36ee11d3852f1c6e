import type { TroupeDefinition } from '../config/agents-file.ts';
import type { Integration } from '../integrations/integration.ts';
import { credentialsIn } from './hide-secrets.ts';

export interface ModelSettings extends Pick<TroupeDefinition, 'agents' | 'context' | 'mcpServers'> {
  integrations?: readonly Pick<Integration, 'secretVariables'>[] | undefined;
}

type Variables = Readonly<Record<string, string | undefined>>;

/** Variables that can only hold a secret, whatever they are called. */
export function keyNames({ agents, context, mcpServers, integrations = [] }: ModelSettings): string[] {
  const ofModels = agents.flatMap((agent) => ('apiKeyEnv' in agent ? [agent.apiKeyEnv] : []));
  const ofServers = Object.values(mcpServers ?? {}).flatMap((server) =>
    'url' in server ? Object.values(server.headersEnv ?? {}) : [],
  );
  const ofIntegrations = integrations.flatMap(({ secretVariables = [] }) => secretVariables);
  const ofEmbedder = context.embedder ? [context.embedder.apiKeyEnv] : [];
  return [...ofModels, ...ofServers, ...ofIntegrations, ...ofEmbedder];
}

/** What is in no recording, line or span: the values of those, and of what programs and tool servers are given. */
export function secretValues(definition: ModelSettings, env: Variables): string[] {
  const given = [
    ...definition.agents.flatMap((agent) => ('env' in agent ? agent.env : [])),
    ...Object.values(definition.mcpServers ?? {}).flatMap((server) =>
      'url' in server ? [] : (server.env ?? []),
    ),
  ];
  return [...keyNames(definition), ...given].flatMap((name) => {
    const value = env[name] ?? '';
    return [value, ...credentialsIn(value)];
  });
}
