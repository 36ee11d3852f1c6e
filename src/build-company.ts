import type { AgentDefinition, TroupeDefinition } from './agents-file.ts';
import type { Company, Member } from './actors/member.ts';
import { policyOf, retrievalOf } from './context-settings.ts';
import { baselineTexts, type AgentProfile, windowOf } from './context/index.ts';
import type { AgentId } from './events/index.ts';
import { priceOf } from './providers/prices.ts';
import type { Provider } from './providers/provider.ts';
import { fragmentsOf } from './fragments.ts';
import { replySchema } from './reply-schema.ts';
import { handoffTool } from './tools/builtin/handoff.ts';
import { readArtifact } from './tools/builtin/read-artifact.ts';
import { type Tool, toolSpec } from './tools/tool.ts';

/** Window of a model nobody told us about. */
export const DEFAULT_CONTEXT_WINDOW = 128_000;

/** Definitions, providers and tools as the engine needs them. */
export function buildCompany(
  definition: Pick<TroupeDefinition, 'agents' | 'tools' | 'fragments' | 'handoffs' | 'context'>,
  providerOf: (agent: AgentDefinition) => Provider,
  countTokens: (text: string) => number,
): Company {
  const builtin = [handoffTool(definition.handoffs ?? 'extract'), readArtifact];
  const offered = new Map<string, Tool>([...definition.tools, ...builtin].map((tool) => [tool.name, tool]));
  const tools = new Map(definition.agents.map((agent) => [agent.id, toolsOf(agent, offered)]));
  const fragments = definition.fragments ?? [];
  const profiles = definition.agents.map((agent) => ({
    ...profileOf(agent, tools.get(agent.id) ?? []),
    fragments: fragmentsOf(fragments, { agent: agent.id, role: agent.role }),
  }));
  const { context } = definition;
  const members = new Map<AgentId, Member>(
    definition.agents.map((agent, index) => {
      const profile = profiles[index] as AgentProfile;
      const granted = tools.get(agent.id) ?? [];
      return [
        agent.id,
        {
          profile,
          provider: providerOf(agent),
          tools: new Map(granted.map((tool) => [tool.name, tool])),
          baseline: baselineTexts(profile, profiles, countTokens),
          pubkey: agent.pubkey ?? null,
          policy: policyOf(context),
          retrieval: retrievalOf(context),
          summarises: context.summaries === 'model',
          summariser: null,
          price: agent.price ?? (agent.provider === 'scripted' ? null : priceOf(agent.model)),
          keepsCompacted: context.compactedSessions !== 'rebuild',
          reply: agent.reply ? replySchema(agent.reply) : null,
        },
      ];
    }),
  );
  const summariser = context.summariser && members.get(context.summariser);
  if (summariser) for (const member of members.values()) member.summariser = summariser;
  return members;
}

/** Of programs that choose a model themselves, and make room in its window themselves, before ours would be full. */
const CLI_WINDOWS: Partial<Record<AgentDefinition['provider'], number>> = {
  'claude-code': 200_000,
  codex: 272_000,
};

/** A script takes whatever it is given, whatever its model is called. */
function knownWindow({ provider, model }: AgentDefinition): number | null {
  if (provider === 'scripted') return null;
  return windowOf(model)?.window ?? CLI_WINDOWS[provider] ?? null;
}

/** One line for each model whose window nobody told us and that we do not know; for warnings. */
export function unknownWindows(agents: readonly AgentDefinition[]): string[] {
  const unknown = agents.filter(
    (agent) =>
      agent.contextWindow === undefined && agent.provider !== 'scripted' && knownWindow(agent) === null,
  );
  return [...new Set(unknown.map(({ model }) => model))].map(
    (model) =>
      `the window of the model "${model}" is not known: ${DEFAULT_CONTEXT_WINDOW} tokens are assumed until it refuses them; set contextWindow`,
  );
}

/** In a stable order, whatever the file's: the tool layer must not change with it. Whoever has tools may read artifacts. */
function toolsOf(agent: AgentDefinition, offered: ReadonlyMap<string, Tool>): Tool[] {
  const names = new Set(agent.tools);
  if (names.size > 0) names.add(readArtifact.name);
  return [...names].sort().flatMap((name) => offered.get(name) ?? []);
}

function profileOf(agent: AgentDefinition, tools: readonly Tool[]): AgentProfile {
  const { id, name = id, role, description, instructions, provider, model, maxOutputTokens, join } = agent;
  return {
    id,
    name,
    role,
    description,
    instructions,
    provider,
    model,
    contextWindow: agent.contextWindow ?? knownWindow(agent) ?? DEFAULT_CONTEXT_WINDOW,
    maxOutputTokens,
    join,
    tools: tools.map(toolSpec),
  };
}
