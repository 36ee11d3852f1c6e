import * as z from 'zod';
import { type AgentInput, AgentFields } from './agent-input.ts';
import type { Problem } from './problem.ts';
import { notAField } from '../../events/index.ts';
import { ProviderSettings, withLanguageModel } from '../../providers/settings.ts';

// Loose at run time, because fields depend on the provider: `unknownFields` refuses the others. Strict as a type.
const LooseAgentFields = AgentFields.loose() as unknown as typeof AgentFields;
export type AgentDefinition = z.infer<typeof AgentFields> & ProviderSettings;
export const AgentDefinition = z.preprocess(
  asParsed,
  z.intersection(LooseAgentFields, ProviderSettings),
) as unknown as z.ZodType<AgentDefinition, AgentInput>;

/** Without fields that are undefined, which the intersection would report as conflicts. */
function asParsed(agent: unknown): unknown {
  if (typeof agent !== 'object' || agent === null || Array.isArray(agent)) return agent;
  return withLanguageModel(
    Object.fromEntries(Object.entries(agent).filter(([, value]) => value !== undefined)),
  );
}

/** Providers by name, as an agents file writes them. */
export const PROVIDER_NAMES: readonly string[] = ProviderSettings.options.map(
  ({ shape }) => shape.provider.value,
);

/** The unknown fields of a list of agents, however invalid they are otherwise, each with the nearest known one. */
export function* unknownFields(agents: unknown, list: 'agents' | 'templates'): Generator<Problem> {
  for (const [index, agent] of Array.isArray(agents) ? agents.entries() : []) {
    if (typeof agent !== 'object' || agent === null) continue;
    const { provider } = agent as { provider?: unknown };
    const settings = ProviderSettings.options.find(({ shape }) => shape.provider.value === provider);
    // Without its provider it is not known which fields an agent has.
    if (!settings) continue;
    const known = [...Object.keys(AgentFields.shape), ...Object.keys(settings.shape)];
    for (const field of Object.keys(agent)) {
      if (!known.includes(field)) yield { path: [list, index, field], message: notAField(field, known) };
    }
  }
}
