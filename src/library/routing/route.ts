import * as z from 'zod';
import { AgentId, type Author } from '../../events/index.ts';

/** A message without recipients, as input of routing. */
export interface Unaddressed {
  /** Id of the conversation. */
  conversation: string;
  /** Who speaks. */
  author: Author;
  /** The words of the message. */
  content: string;
  /** Media types of its attachments. */
  attachments: readonly string[];
}

/** Facts about the conversation of the message. */
interface Place {
  /** Agents in order of preference: of equally good ones, the first is chosen. */
  agents: readonly Candidate[];
  /** Whether an agent participates: it has not left and is not retired. */
  isHere: (agent: AgentId) => boolean;
  /** Seq of the last message addressed to this agent alone; undefined if there is none. */
  askedAt: (agent: AgentId) => number | undefined;
}

/** The recipients of a message; empty if nothing matches. Pure, so a retry gives the same. */
export function routeBy(settings: RoutingSettings, message: Unaddressed, place: Place): AgentId[] {
  switch (settings.by) {
    case 'agent':
      return [settings.agent].filter(place.isHere);
    case 'round':
      return nextInRound(settings.agents.filter(place.isHere), place.askedAt);
    case 'capability': {
      const { agents } = settings;
      const asked = agents
        ? agents.flatMap((id) => place.agents.find((agent) => agent.id === id) ?? [])
        : place.agents;
      return bestByCapability(
        message.content,
        asked.filter(({ id }) => place.isHere(id)),
      );
    }
    case 'rules': {
      const rule = settings.rules.find((each) => holds(each, message) && each.to.some(place.isHere));
      return rule?.to.filter(place.isHere) ?? [];
    }
  }
}

function holds({ matches, from, conversation, attachment }: RoutingRule, message: Unaddressed): boolean {
  return (
    (matches === undefined || found(matches, message.content)) &&
    (from === undefined || (message.author.kind === 'user' && from.includes(message.author.id))) &&
    (conversation === undefined || found(conversation, message.conversation)) &&
    (attachment === undefined || message.attachments.some((type) => found(attachment, type)))
  );
}

/** Patterns are matched against this many characters of a message: an operator's pattern may take quadratic time. */
const MATCHED_CHARS = 4_096;

function found(pattern: string, text: string): boolean {
  return new RegExp(pattern, 'iu').test(text.slice(0, MATCHED_CHARS));
}

interface Candidate {
  id: AgentId;
  role: string;
  description: string;
  capabilities?: readonly string[] | undefined;
}

/** Weight of a word in `capabilities`, and of one in a description. */
const CAPABILITY = 3;
const DESCRIPTION = 1;
/** Number of first letters by which words are compared, so that `translate` matches `translation`. */
const STEM = 6;
const SHORTEST = 3;
const COMMON = new Set(
  'and any are but can could for from has have how into its not now our out please some that the then there this was what when where which who why will with would you your'.split(
    ' ',
  ),
);

/** The agent that shares the most words with a text, the first of equals; empty if no agent shares a word. */
export function bestByCapability(text: string, agents: readonly Candidate[]): AgentId[] {
  const asked = wordsOf(text);
  let best: AgentId | null = null;
  let most = 0;
  for (const agent of agents) {
    const score = scoreOf(asked, agent);
    if (score > most) [best, most] = [agent.id, score];
  }
  return best === null ? [] : [best];
}

function scoreOf(
  asked: ReadonlySet<string>,
  { id, role, description, capabilities = [] }: Candidate,
): number {
  const able = wordsOf(capabilities.join(' '));
  const described = wordsOf(`${id} ${role} ${description}`);
  let score = 0;
  for (const word of asked) score += able.has(word) ? CAPABILITY : described.has(word) ? DESCRIPTION : 0;
  return score;
}

function wordsOf(text: string): Set<string> {
  const words = text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
  const significant = words.filter((word) => word.length >= SHORTEST && !COMMON.has(word));
  return new Set(significant.map((word) => word.slice(0, STEM)));
}

/** The agent after the one that was asked last, or the first. The log determines the position, so it survives a restart. */
export function nextInRound<Id extends string>(
  agents: readonly Id[],
  askedAt: (agent: Id) => number | undefined,
): Id[] {
  let last = -1;
  let lastAt = 0;
  for (const [index, agent] of agents.entries()) {
    const at = askedAt(agent) ?? 0;
    if (at > lastAt) [last, lastAt] = [index, at];
  }
  const next = agents[(last + 1) % agents.length];
  return next === undefined ? [] : [next];
}

const Agents = z.array(AgentId).min(1).max(256);

/** One rule: all its conditions must hold, and there is at least one. Patterns are case-insensitive regular expressions. */
const RoutingRule = z
  .strictObject({
    /** Pattern of the text of the message. */
    matches: Pattern().optional(),
    /** Ids of people. */
    from: z.array(z.string().min(1)).min(1).optional(),
    /** Pattern of the id of the conversation. */
    conversation: Pattern().optional(),
    /** Pattern of the media type of an attachment. */
    attachment: Pattern().optional(),
    /** Ids of the agents that get the message. */
    to: Agents,
  })
  .refine(
    ({ matches, from, conversation, attachment }) =>
      [matches, from, conversation, attachment].some((each) => each !== undefined),
    'a rule needs a condition: matches, from, conversation or attachment',
  );
type RoutingRule = z.infer<typeof RoutingRule>;

/** Chooses the recipients of a person's unaddressed message. Decided once, when the message is stored. */
export const RoutingSettings = z.discriminatedUnion('by', [
  z.strictObject({
    /** How recipients are found: always the same agent, which may hand off or delegate. */
    by: z.literal('agent'),
    /** Its id. */
    agent: AgentId,
  }),
  z.strictObject({
    /** How recipients are found: one agent after the other, in turn. */
    by: z.literal('round'),
    /** Their ids. */
    agents: Agents,
  }),
  z.strictObject({
    /**
     * How recipients are found: the agent whose description, role and capabilities share the most words with the message; none
     * if no word is shared.
     */
    by: z.literal('capability'),
    /** Ids of the agents that are compared. Default: all. */
    agents: Agents.optional(),
  }),
  z.strictObject({
    /** How recipients are found: by the first matching rule. */
    by: z.literal('rules'),
    /** In the order in which they are tried. */
    rules: z.array(RoutingRule).min(1).max(256),
  }),
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

/** The agents that the settings name, with the paths. None for invalid settings. */
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
