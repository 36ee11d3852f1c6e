import { TroupeError } from '../../base/errors.ts';
import type { AgentId, Author, ConversationId, Event, JoinPolicy } from '../../events/index.ts';
import { foldParticipants, isHere, newParticipants, type Participants } from '../../machines/task-fold.ts';
import type { NewMessage, Troupe } from '../troupe.ts';
import { routeBy, type Unaddressed, type RoutingSettings } from './route.ts';

/** Media type of an attachment that has not been fetched yet. */
const UNKNOWN_TYPE = 'application/octet-stream';

/** A rule in code. The first matching rule with participating agents decides who hears an unaddressed message. */
interface Rule {
  /** Whether the rule fits. */
  when: (message: Unaddressed) => boolean;
  /** Ids of the agents that get the message. */
  to: readonly string[];
}

/** Options of `createOrchestrator`. */
export interface OrchestratorOptions {
  /** The person in whose name it acts: only people may change the participants. */
  by: Author;
  /** In the order in which they are tried. */
  rules?: readonly Rule[] | undefined;
  /** Applies if no rule matches. Default: the routing of the troupe. */
  otherwise?: RoutingSettings | undefined;
}

type Sent = Awaited<ReturnType<Troupe['send']>>;

/** Routes messages and changes participants of conversations, as a program that uses the public API. */
export interface Orchestrator {
  /** Sends a message. The rules choose the recipients of a person's new unaddressed message. */
  send(conversation: string, message: NewMessage): Promise<Sent>;
  /** Lets an agent take part. */
  join(conversation: string, agent: string, policy?: JoinPolicy): Promise<Event>;
  /** Ends the part of an agent. */
  leave(conversation: string, agent: string, reason?: string): Promise<Event>;
  /** Forbids an agent to take turns in a conversation. */
  block(conversation: string, agent: string, reason?: string): Promise<Event>;
  /** Allows it again. */
  unblock(conversation: string, agent: string): Promise<Event>;
  /** Retires an agent. */
  retire(conversation: string, agent: string): Promise<Event>;
  /** Compacts the agent's prompt before its next model call, however much room is left. */
  compact(conversation: string, agent: string): Promise<Event>;
  /** Takes a retired agent back. */
  reinstate(conversation: string, agent: string): Promise<Event>;
  /** @deprecated Use `reinstate`. */
  recall(conversation: string, agent: string): Promise<Event>;
  /** Adds the next agent of a template and returns its id. */
  spawn(conversation: string, template: string): Promise<AgentId>;
  /** Archives the conversation. */
  archive(conversation: string, reason?: string): Promise<Event>;
  /** Opens an archived conversation again. */
  reopen(conversation: string, reason?: string): Promise<Event>;
}

const PAGE = 1_000;

type OrchestratedTroupe = Pick<Troupe, 'agents' | 'send' | 'events' | 'command'> &
  Partial<Pick<Troupe, 'checkpoint' | 'saveCheckpoint'>>;

/** Its only state is what it has read of the logs, so that a new one makes the same decisions after a restart. */
export function createOrchestrator(troupe: OrchestratedTroupe, options: OrchestratorOptions): Orchestrator {
  const route = createRouter(troupe, options);
  return {
    async send(conversation, message) {
      const isNew = message.author.kind === 'user' && message.replyTo === undefined;
      const isNotice = message.includeInContext === false;
      if (!isNew || isNotice || (message.to ?? []).length > 0) return troupe.send(conversation, message);
      const to = await route(conversation, message);
      try {
        return await troupe.send(conversation, { ...message, ...(to.length > 0 && { to }) });
      } catch (error) {
        if (!(error instanceof TroupeError) || error.code !== 'event_conflict') throw error;
        const event = await sentBefore(troupe, conversation, message);
        if (!event) throw error;
        return { kind: 'exists', event };
      }
    },
    ...conversationCommands(troupe, options.by),
  };
}

type Route = (conversation: string, message: NewMessage) => Promise<readonly string[]>;

/** Chooses the recipients of a message, by the rules first. Follows the participants of each conversation in its log. */
function createRouter(troupe: OrchestratedTroupe, { rules = [], otherwise }: OrchestratorOptions): Route {
  const participantsCache = new Map<string, Followed>();

  async function follow(conversation: string): Promise<Followed> {
    const restored = participantsCache.has(conversation) ? null : await storedIn(troupe, conversation);
    const followed = participantsCache.get(conversation) ?? restored ?? newFollowed();
    participantsCache.set(conversation, followed);
    return followed;
  }

  async function participantsOf(conversation: string): Promise<Participants> {
    const followed = await follow(conversation);
    const { participants } = followed;
    for (;;) {
      const events = await eventsAfter(troupe, conversation, participants.tasks.upTo);
      for (const event of events) foldParticipants(participants, event);
      if (events.length === 0) break;
    }
    await store(troupe, conversation, followed);
    return participants;
  }

  return async function route(conversation, message) {
    const participants = await participantsOf(conversation);
    const { author, content, attachments = [] } = message;
    const unaddressed = {
      conversation,
      author,
      content,
      attachments: attachments.map(({ mediaType = UNKNOWN_TYPE }) => mediaType),
    };
    const here = (agent: string) => isHere(participants, agent as AgentId);
    const rule = rules.find((each) => each.when(unaddressed) && each.to.some(here));
    if (rule) return rule.to.filter(here);
    if (!otherwise) return [];
    const place = {
      agents: troupe.agents,
      isHere: here,
      askedAt: (agent: AgentId) => participants.asked.get(agent),
    };
    return routeBy(otherwise, unaddressed, place);
  };
}

interface Followed {
  participants: Participants;
  /** Seq of the stored participants. */
  stored: number;
}

const READER = 'orchestrator';
/** Number of events after which the participants are stored again. */
const STORED_EVENTS = 128;

function newFollowed(): Followed {
  return { participants: newParticipants(), stored: 0 };
}

async function storedIn(troupe: OrchestratedTroupe, conversation: string): Promise<Followed | null> {
  const found = await unlessUnknown(async () => troupe.checkpoint?.(conversation, READER));
  return found ? { participants: found.content as Participants, stored: found.seq } : null;
}

async function store(troupe: OrchestratedTroupe, conversation: string, followed: Followed): Promise<void> {
  const { participants, stored } = followed;
  const { upTo: seq, tasks } = participants.tasks;
  // The more tasks there are, the less often they are stored.
  if (seq - stored < Math.max(STORED_EVENTS, tasks.size)) return;
  followed.stored = seq;
  const content = structuredClone(participants);
  await unlessUnknown(async () => troupe.saveCheckpoint?.(conversation, READER, { seq, content }));
}

/** The message already stored under the same id, whose recipients may differ. */
async function sentBefore(
  troupe: OrchestratedTroupe,
  conversation: string,
  { id, author, content }: NewMessage,
): Promise<Event | null> {
  for (let after = 0; ;) {
    const events = await eventsAfter(troupe, conversation, after);
    const found = events.find((event) => event.id === id);
    if (found) {
      const isSame =
        found.kind === 'message' && found.author.id === author.id && found.body.content === content;
      return isSame ? found : null;
    }
    if (events.length === 0) return null;
    after = events.at(-1)?.seq ?? after;
  }
}

async function eventsAfter(
  troupe: OrchestratedTroupe,
  conversation: string,
  after: number,
): Promise<Event[]> {
  const page = await unlessUnknown(() => troupe.events(conversation, { after, limit: PAGE }));
  return page?.events ?? [];
}

/** The first message creates the conversation. */
async function unlessUnknown<T>(read: () => Promise<T>): Promise<T | null> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof TroupeError && error.code === 'conversation_unknown') return null;
    throw error;
  }
}

/** Commands about participants and conversations, in the name of one person. */
function conversationCommands(troupe: OrchestratedTroupe, by: Author): Omit<Orchestrator, 'send'> {
  const about = (conversation: string, agent: string) => ({
    conversation: conversation as ConversationId,
    agent: agent.replace(/^@/, '') as AgentId,
  });

  const reinstate: Orchestrator['reinstate'] = (conversation, agent) =>
    troupe.command({ command: 'reinstate', ...about(conversation, agent) }, by);

  return {
    join: (conversation, agent, policy) =>
      troupe.command({ command: 'join', ...about(conversation, agent), ...(policy && { policy }) }, by),
    leave: (conversation, agent, reason) =>
      troupe.command({ command: 'leave', ...about(conversation, agent), reason }, by),
    block: (conversation, agent, reason) =>
      troupe.command({ command: 'block', ...about(conversation, agent), reason }, by),
    unblock: (conversation, agent) =>
      troupe.command({ command: 'unblock', ...about(conversation, agent) }, by),
    retire: (conversation, agent) => troupe.command({ command: 'retire', ...about(conversation, agent) }, by),
    reinstate,
    recall: reinstate,
    compact: (conversation, agent) =>
      troupe.command({ command: 'compact', ...about(conversation, agent) }, by),
    async spawn(conversation, template) {
      const { conversation: where, agent } = about(conversation, template);
      const event = await troupe.command({ command: 'spawn', conversation: where, template: agent }, by);
      if (event.kind !== 'membership.changed')
        throw new TroupeError('internal', `spawn returned a ${event.kind} event`);
      return event.body.agent;
    },
    archive: (conversation, reason) =>
      troupe.command({ command: 'archive', conversation: conversation as ConversationId, reason }, by),
    reopen: (conversation, reason) =>
      troupe.command({ command: 'reopen', conversation: conversation as ConversationId, reason }, by),
  };
}
