import type { AgentId, Author } from '../events/index.ts';
import { bestByCapability, type Candidate } from './match-capability.ts';
import { nextInRound } from './next-in-round.ts';
import type { RoutingRule, RoutingSettings } from './routing-settings.ts';

/** A message that names nobody, as routing sees it. */
export interface Unaddressed {
  conversation: string;
  author: Author;
  content: string;
  /** Media types of what came with it. */
  attachments: readonly string[];
}

/** What else is known where it is said. */
export interface Place {
  /** In order: of equals the first is taken. */
  agents: readonly Candidate[];
  /** Whether an agent takes part: one that has left or is retired is passed over. */
  isHere: (agent: AgentId) => boolean;
  /** Seq of the last message that went to an agent alone; undefined where none did. */
  askedAt: (agent: AgentId) => number | undefined;
}

/** Whom a message goes to; nobody where nothing fits. A function of what is given, so a retry finds the same. */
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

/** Of a message; its operator's pattern may well take the square of what it is tried on. */
const MATCHED_CHARS = 4_096;

function found(pattern: string, text: string): boolean {
  return new RegExp(pattern, 'iu').test(text.slice(0, MATCHED_CHARS));
}
