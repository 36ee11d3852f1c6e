import * as z from 'zod';
import { AgentId } from '../events/index.ts';

const Agents = z.array(AgentId).min(1).max(256);

/** One rule: all its conditions must hold. `matches` and `attachment` are case-insensitive regular expressions. */
export const RoutingRule = z
  .strictObject({
    /** Matched against the text of the message. */
    matches: Pattern().optional(),
    /** Ids of people. */
    from: z.array(z.string().min(1)).min(1).optional(),
    /** Matched against the id of the conversation. */
    conversation: Pattern().optional(),
    /** Matched against the media type of each attachment. */
    attachment: Pattern().optional(),
    to: Agents,
  })
  .refine(
    ({ matches, from, conversation, attachment }) =>
      [matches, from, conversation, attachment].some((each) => each !== undefined),
    'a rule needs a condition: matches, from, conversation or attachment',
  );
export type RoutingRule = z.infer<typeof RoutingRule>;

/** Chooses the recipients of a person's unaddressed message. Decided once, when the message is stored. */
export const RoutingSettings = z.discriminatedUnion('by', [
  /** One agent, which may hand off or delegate. */
  z.strictObject({ by: z.literal('agent'), agent: AgentId }),
  /** One agent after the other, in turn. */
  z.strictObject({ by: z.literal('round'), agents: Agents }),
  /** The agent whose description, role and capabilities share the most words with the message; none if no word is shared. */
  z.strictObject({ by: z.literal('capability'), agents: Agents.optional() }),
  /** The first matching rule. */
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

/** Reports unknown agents. */
export function* routingProblems(
  settings: unknown,
  isKnown: (agent: string) => boolean,
): Generator<{ path: PropertyKey[]; message: string }> {
  const parsed = RoutingSettings.safeParse(settings);
  if (!parsed.success) return;
  for (const [path, agent] of namedIn(parsed.data)) {
    if (!isKnown(agent)) yield { path: ['routing', ...path], message: `there is no agent "${agent}"` };
  }
}

function* namedIn(settings: RoutingSettings): Generator<[PropertyKey[], AgentId]> {
  if (settings.by === 'agent') yield [['agent'], settings.agent];
  else if (settings.by === 'rules') {
    for (const [at, { to }] of settings.rules.entries()) {
      for (const [index, agent] of to.entries()) yield [['rules', at, 'to', index], agent];
    }
  } else for (const [index, agent] of (settings.agents ?? []).entries()) yield [['agents', index], agent];
}
