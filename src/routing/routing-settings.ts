import * as z from 'zod';
import { AgentId } from '../events/index.ts';

const Agents = z.array(AgentId).min(1).max(256);

/** One rule: all that it names must hold. `matches` and `attachment` are regular expressions, without regard to case. */
export const RoutingRule = z
  .strictObject({
    /** In what was said. */
    matches: Pattern().optional(),
    /** Ids of people. */
    from: z.array(z.string().min(1)).min(1).optional(),
    /** In the id of the conversation. */
    conversation: Pattern().optional(),
    /** In the media type of something that came with it. */
    attachment: Pattern().optional(),
    to: Agents,
  })
  .refine(
    ({ matches, from, conversation, attachment }) =>
      [matches, from, conversation, attachment].some((each) => each !== undefined),
    'a rule needs a condition: matches, from, conversation or attachment',
  );
export type RoutingRule = z.infer<typeof RoutingRule>;

/** Who hears what a person says to nobody in particular. Decided once, when it is stored. */
export const RoutingSettings = z.discriminatedUnion('by', [
  /** An agent that hands over or delegates. */
  z.strictObject({ by: z.literal('agent'), agent: AgentId }),
  /** One after the other. */
  z.strictObject({ by: z.literal('round'), agents: Agents }),
  /** Whoever's description, role and capabilities have the most words in common with it; nobody where none has any. */
  z.strictObject({ by: z.literal('capability'), agents: Agents.optional() }),
  /** The first rule that holds. */
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

/** Whoever is named and not known. */
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
