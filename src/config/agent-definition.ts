import * as z from 'zod';
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
  instructions: z.string().default(''),
  /** Directory with an AGENTS.md, IDENTITY.md or SOUL.md of its own: see `workspace` of the troupe. Default: none. */
  workspace: z.string().min(1).optional(),
  /** Directories of skills of its own: see `skills` of the troupe. Default: none. */
  skills: z.array(z.string().min(1)).optional(),
  tools: z.array(z.string()).default([]),
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

// Loose at run time, so that `unknownFields` can warn; strict as a type, so that editors mark unknown fields.
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

/** A warning for each unknown field of an agent, with the nearest known one. */
export function unknownFields(agents: readonly AgentDefinition[], list = 'agents'): string[] {
  return agents.flatMap((agent, index) => {
    const settings = ProviderSettings.options.find(({ shape }) => shape.provider.value === agent.provider);
    const known = [...Object.keys(AgentFields.shape), ...Object.keys(settings?.shape ?? {})];
    const unknown = Object.keys(agent).filter((field) => !known.includes(field));
    return unknown.map((field) => {
      const nearest = nearestName(field, known);
      return `${list}[${index}].${field} is not a field and is ignored${nearest ? `; did you mean "${nearest}"?` : ''}`;
    });
  });
}
