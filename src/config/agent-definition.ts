import * as z from 'zod';
import type { InstructionsFunction } from '../actors/engine/agent-runtime.ts';
import type { Problem } from './problem.ts';
import { RetrySettings } from './retry-settings.ts';
import { replyProblem, type ReplyInput } from './reply-schema.ts';
import { SupervisionSettings } from './supervision-settings.ts';
import { AgentId, BusyPolicy, JoinPolicy, nearestName } from '../events/index.ts';
import { ProviderSettings } from '../providers/settings.ts';

const AgentFields = z.object({
  id: AgentId,
  name: z.string().min(1).max(200).optional(),
  role: z.enum(['manager', 'worker', 'peer']).default('peer'),
  /** One line for the other agents, shown in their rosters. Default: none. */
  description: z.string().max(300).default(''),
  /** Skills, for routing by capability. */
  capabilities: z.array(z.string().min(1).max(100)).max(100).optional(),
  /**
   * What the agent is to do: a text, or a function that writes it for a conversation. The function is asked when the
   * agent's baseline is made, and its text stays until the next one. Default: none.
   */
  instructions: z
    .union(
      [z.string(), z.custom<InstructionsFunction>((value) => typeof value === 'function')],
      'give a text or a function',
    )
    .default(''),
  /** Directory with an AGENTS.md, IDENTITY.md or SOUL.md of its own: see `workspace` of the troupe. Default: none. */
  workspace: z.string().min(1).optional(),
  /** Directories of skills of its own: see `skills` of the troupe. Default: none. */
  skills: z.array(z.string().min(1)).optional(),
  tools: z.array(z.string()).default([]),
  /**
   * Tools of its `tools` each call of which waits for a person's approval: names, `SERVER/tool` or `SERVER/*`. A tool that
   * needs approval by its own definition keeps its deciders and its deadline. Default: none.
   */
  needsApproval: z.array(z.string()).optional(),
  /**
   * What the agent sees of a conversation from before it joined: everything (`full`), a summary and the newest events
   * (`summary`), or only the message that woke it (`fresh`). Default `full`.
   */
  join: JoinPolicy.default('full'),
  /**
   * Role of other agents' words that a turn does not answer: `user`, or `system` where the provider takes such messages
   * between others (`capabilities.interleavedSystem`). Models give the words more weight then. Default `user`.
   */
  peers: z.enum(['user', 'system']).default('user'),
  /**
   * Treatment of a message while the agent has a turn under way: it waits for the next turn (`queue`), joins the next step
   * (`steer`), aborts the turn (`interrupt`), or is refused (`reject`). A message may override it. Default `queue`.
   */
  whileBusy: BusyPolicy.default('queue'),
  /** How long a call waits for a model server that is restarting or loading the model. */
  retry: RetrySettings.prefault({}),
  /** Schema of the replies, as a zod schema or a JSON schema: replies are data then. Default: plain text. */
  reply: z.custom<ReplyInput>().superRefine(refineReply).optional(),
  /** Overrides fields of the troupe's `supervision`. */
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
  withoutUndefined,
  z.intersection(LooseAgentFields, ProviderSettings),
) as unknown as z.ZodIntersection<typeof AgentFields, typeof ProviderSettings>;
export type AgentDefinition = z.infer<typeof AgentDefinition>;
/** An agent of a definition. Fields with a default may be left out. */
export type AgentInput = z.input<typeof AgentDefinition>;

/** Drops fields with the value undefined: the intersection would report them as conflicts. */
function withoutUndefined(agent: unknown): unknown {
  if (typeof agent !== 'object' || agent === null || Array.isArray(agent)) return agent;
  return Object.fromEntries(Object.entries(agent).filter(([, value]) => value !== undefined));
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

export function notAField(field: string, known: readonly string[]): string {
  const nearest = nearestName(field, known);
  return `is not a field${nearest ? `; did you mean "${nearest}"?` : ''}`;
}
