import * as z from 'zod';
import { AgentId } from '../../events/index.ts';

const Agents = z.array(AgentId).min(1).max(256);

/** One rule: all its conditions must hold, and there is at least one. Patterns are case-insensitive regular expressions. */
export interface RoutingRuleInput {
  /** Pattern of the text of the message. */
  matches?: string | undefined;
  /** Ids of people. */
  from?: readonly string[] | undefined;
  /** Pattern of the id of the conversation. */
  conversation?: string | undefined;
  /** Pattern of the media type of an attachment. */
  attachment?: string | undefined;
  /** Ids of the agents that get the message. */
  to: readonly string[];
}

/** Always the same agent, which may hand off or delegate. */
export interface AgentRouting {
  /** How recipients are found. */
  by: 'agent';
  /** Its id. */
  agent: string;
}

/** One agent after the other, in turn. */
export interface RoundRouting {
  /** How recipients are found. */
  by: 'round';
  /** Their ids. */
  agents: readonly string[];
}

/** The agent whose description, role and capabilities share the most words with the message; none if no word is shared. */
export interface CapabilityRouting {
  /** How recipients are found. */
  by: 'capability';
  /** Ids of the agents that are compared. Default: all. */
  agents?: readonly string[] | undefined;
}

/** The first matching rule. */
export interface RuleRouting {
  /** How recipients are found. */
  by: 'rules';
  /** In the order in which they are tried. */
  rules: readonly RoutingRuleInput[];
}

/** Chooses the recipients of a person's unaddressed message. Decided once, when the message is stored. */
export type RoutingInput = AgentRouting | RoundRouting | CapabilityRouting | RuleRouting;

export const RoutingRule = z
  .strictObject({
    matches: Pattern().optional(),
    from: z.array(z.string().min(1)).min(1).optional(),
    conversation: Pattern().optional(),
    attachment: Pattern().optional(),
    to: Agents,
  })
  .refine(
    ({ matches, from, conversation, attachment }) =>
      [matches, from, conversation, attachment].some((each) => each !== undefined),
    'a rule needs a condition: matches, from, conversation or attachment',
  );
export type RoutingRule = z.infer<typeof RoutingRule>;

export const RoutingSettings = z.discriminatedUnion('by', [
  z.strictObject({ by: z.literal('agent'), agent: AgentId }),
  z.strictObject({ by: z.literal('round'), agents: Agents }),
  z.strictObject({ by: z.literal('capability'), agents: Agents.optional() }),
  z.strictObject({ by: z.literal('rules'), rules: z.array(RoutingRule).min(1).max(256) }),
]);
export type RoutingSettings = z.infer<typeof RoutingSettings>;

function Pattern() {
  return z
    .string()
    .min(1)
    .max(1_000)
    .superRefine((text, context) => {
      try {
        new RegExp(text, 'iu');
      } catch (error) {
        context.addIssue({ code: 'custom', message: error instanceof Error ? error.message : String(error) });
      }
    });
}

/** The agents that settings name, with their places. None for invalid settings. */
export function* agentsInRouting(given: unknown): Generator<[PropertyKey[], AgentId]> {
  const { success, data: settings } = RoutingSettings.safeParse(given);
  if (!success) return;
  if (settings.by === 'agent') yield [['agent'], settings.agent];
  else if (settings.by === 'rules') {
    for (const [at, { to }] of settings.rules.entries()) {
      for (const [index, agent] of to.entries()) yield [['rules', at, 'to', index], agent];
    }
  } else for (const [index, agent] of (settings.agents ?? []).entries()) yield [['agents', index], agent];
}
