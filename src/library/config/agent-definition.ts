import * as z from 'zod';
import type { InstructionsFunction } from '../../actors/actor/agent-runtime.ts';
import type { Problem } from './problem.ts';
import { RetrySettings } from './retry-settings.ts';
import { replyProblem, type ReplyInput } from './reply-schema.ts';
import { SupervisionSettings } from './supervision-settings.ts';
import { AgentId, BusyPolicy, JoinPolicy, notAField } from '../../events/index.ts';
import { ProviderSettings, withLanguageModel } from '../../providers/settings.ts';

const AgentFields = z.object({
  id: AgentId,
  aliases: z.array(AgentId).max(100).optional(),
  name: z.string().min(1).max(200).optional(),
  role: z.enum(['manager', 'worker', 'peer']).default('peer'),
  description: z.string().max(300).default(''),
  capabilities: z.array(z.string().min(1).max(100)).max(100).optional(),
  instructions: z
    .union(
      [z.string(), z.custom<InstructionsFunction>((value) => typeof value === 'function')],
      'give a text or a function',
    )
    .default(''),
  workspace: z.string().min(1).optional(),
  skills: z.array(z.string().min(1)).optional(),
  tools: z.array(z.string()).default([]),
  needsApproval: z.array(z.string()).optional(),
  join: JoinPolicy.default('full'),
  peers: z.enum(['user', 'system']).default('user'),
  framing: z.enum(['marked', 'plain']).default('marked'),
  sees: z.enum(['words', 'results']).default('words'),
  whileBusy: BusyPolicy.default('queue'),
  retry: RetrySettings.prefault({}),
  reply: z.custom<ReplyInput>().superRefine(refineReply).optional(),
  supervision: SupervisionSettings.optional(),
  pubkey: z
    .string()
    .regex(/^[0-9a-f]{64}$/, 'a pubkey is 64 lower-case hex digits')
    .optional(),
});

function refineReply(reply: unknown, context: z.RefinementCtx): void {
  const message = replyProblem(reply);
  if (message !== null) context.addIssue({ code: 'custom', message });
}

// Loose at run time, because fields depend on the provider: `unknownFields` refuses the others. Strict as a type.
const LooseAgentFields = AgentFields.loose() as unknown as typeof AgentFields;
export const AgentDefinition = z.preprocess(
  asParsed,
  z.intersection(LooseAgentFields, ProviderSettings),
) as unknown as z.ZodIntersection<typeof AgentFields, typeof ProviderSettings>;
export type AgentDefinition = z.infer<typeof AgentDefinition>;
export type { AgentInput } from './agent-input.ts';

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
