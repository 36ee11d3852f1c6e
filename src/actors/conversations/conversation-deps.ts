import { TroupeError } from '../../base/errors.ts';
import type {
  ActorAddress,
  AgentId,
  Author,
  ConversationId,
  Event,
  EventContext,
  EventDraft,
  EventDraftOf,
  EventId,
  JoinPolicy,
} from '../../events/index.ts';
import type { Appended, ConversationKey } from '../../store/store.ts';
import type { EngineDeps } from '../engine/engine-deps.ts';
import { readOwn } from '../log/own-id.ts';
import { isRetired } from '../../machines/membership.ts';
import type { Participants } from '../../machines/participants.ts';
import type { ParticipantsCache } from './participants-cache.ts';
import type { Trust } from './trust.ts';

/** Dependencies of the rules for messages, participants and commands. */
export interface ConversationDeps {
  deps: EngineDeps;
  engine: { resume(address: ActorAddress, as?: 'RETRY' | 'REINSTATE'): Promise<void> };
  participantsCache: ParticipantsCache;
  trust: Trust;
  /** Agent for messages that name no agent and match no route. */
  fallback: AgentId | null;
  /** Whether the agent that a conversation was handed over to comes before the fallback. */
  sticks: boolean;
  router: MessageRouter | null;
  newId: () => EventId;
}

/** Finds the recipients of a message that names none. */
export interface MessageRouter {
  by: NonNullable<EventContext['routed']>;
  find(
    message: { conversation: ConversationId; author: Author; content: string; attachments: string[] },
    place: { isHere: (agent: AgentId) => boolean; askedAt: (agent: AgentId) => number | undefined },
  ): AgentId[];
}

type Message = EventDraftOf<'message'>;

/**
 * Appends a message of a trusted person. The same append first makes the changes that the message implies: a closed
 * conversation is reopened, recipients that left rejoin, retired recipients are reinstated. A message that is already
 * stored implies nothing.
 */
export async function appendTrusted(
  conversations: ConversationDeps,
  log: ConversationKey,
  message: Message,
  participants: Participants,
): Promise<Appended> {
  const { deps, engine } = conversations;
  const { away, unavailable, directions } = participants.tasks;
  if (away.size === 0 && unavailable.size === 0 && !directions.archived)
    return appendLast(deps, log, [message]);
  const changes = impliedChanges(conversations, message, participants);
  const isStored = changes.length > 0 && (await deps.store.readById(log, message.id)) !== null;
  if (!isStored) {
    // Before the append: an agent reinstated in the log alone would never be resumed.
    for (const agent of message.to)
      if (isRetired(participants.tasks, agent)) await engine.resume({ ...log, agent }, 'REINSTATE');
  }
  return appendLast(deps, log, isStored ? [message] : [...changes, message]);
}

export async function appendLast(
  { log: events }: Pick<EngineDeps, 'log'>,
  log: ConversationKey,
  drafts: EventDraft[],
): Promise<Appended> {
  const last = (await events.append(log, drafts)).at(-1);
  if (!last) throw new Error('the log did not return the appended event');
  return last;
}

/** Appends under an id that another writer may take first. Returns the event that was first. */
export async function appendFirst(
  { log: events, store }: Pick<EngineDeps, 'log' | 'store'>,
  log: ConversationKey,
  draft: EventDraft,
): Promise<Event> {
  try {
    const [appended] = await events.append(log, [draft]);
    if (appended) return appended.event;
  } catch (error) {
    if (!(error instanceof TroupeError) || error.code !== 'event_conflict') throw error;
  }
  const first = await readOwn(store, log, draft);
  if (!first) throw new TroupeError('internal', `the log did not return ${draft.id}`);
  return first;
}

function impliedChanges(
  { deps, newId }: ConversationDeps,
  { author, to }: Message,
  { tasks }: Participants,
): EventDraft[] {
  const by = () => ({ id: newId(), author, to: [] });
  const reopened: EventDraft[] = tasks.directions.archived
    ? [{ ...by(), kind: 'reopened', body: { reason: `a message of ${author.name}` } }]
    : [];
  const back = to.flatMap((agent): EventDraft[] => [
    ...(tasks.away.has(agent)
      ? [{ ...by(), kind: 'joined' as const, body: { agent, policy: joinPolicyOf(deps, tasks, agent) } }]
      : []),
    ...(isRetired(tasks, agent)
      ? [{ ...by(), kind: 'command' as const, body: { command: 'recall' as const, agent } }]
      : []),
  ]);
  return [...reopened, ...back];
}

/** How much of the earlier conversation an agent sees: as when it first joined, else its profile's default. */
export function joinPolicyOf(
  { agents }: Pick<EngineDeps, 'agents'>,
  { joined }: Participants['tasks'],
  agent: AgentId,
): JoinPolicy {
  return joined.get(agent) ?? agents.get(agent)?.profile.join ?? 'full';
}
