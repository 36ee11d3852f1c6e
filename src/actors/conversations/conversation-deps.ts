import { TroupeError } from '../../errors.ts';
import type {
  AgentId,
  Author,
  ConversationId,
  Event,
  EventContext,
  EventDraft,
  EventDraftOf,
  EventId,
} from '../../events/index.ts';
import type { Appended, ConversationKey } from '../../store/store.ts';
import type { Engine } from '../engine/engine.ts';
import type { EngineDeps } from '../engine/engine-deps.ts';
import { readOwn } from '../log/own-id.ts';
import type { Participants } from '../../machines/participants.ts';
import type { ParticipantsCache } from './participants-cache.ts';
import type { Trust } from './trust.ts';

/** What decides about messages and about who takes part, and what it is decided with. */
export interface ConversationDeps {
  deps: EngineDeps;
  engine: Pick<Engine, 'resume'>;
  participantsCache: ParticipantsCache;
  trust: Trust;
  /** Who answers what nobody is found for. */
  fallback: AgentId | null;
  router: MessageRouter | null;
  newId: () => EventId;
}

/** Finds whom a message goes to that names nobody. */
export interface MessageRouter {
  by: NonNullable<EventContext['routed']>;
  find(
    message: { conversation: ConversationId; author: Author; content: string; attachments: string[] },
    place: { isHere: (agent: AgentId) => boolean; askedAt: (agent: AgentId) => number | undefined },
  ): AgentId[];
}

type Message = EventDraftOf<'message'>;

/**
 * Appends what a trusted person says to agents. First, in the same append, what it brings about: a closed conversation
 * is open again, who was away is back, who was retired is called back. What is stored already brings about nothing.
 */
export async function appendHeard(
  door: ConversationDeps,
  log: ConversationKey,
  message: Message,
  participants: Participants,
): Promise<Appended> {
  const { deps, engine } = door;
  const brought = opening(door, message, participants);
  const isStored = brought.length > 0 && (await deps.store.readById(log, message.id)) !== null;
  if (!isStored) {
    // Before the log says so: one that is called back in the log alone would be called by nobody again.
    for (const agent of message.to)
      if (participants.retired.has(agent)) await engine.resume({ ...log, agent }, 'REINSTATE');
  }
  return appendLast(deps, log, isStored ? [message] : [...brought, message]);
}

export async function appendLast(
  { log: events }: Pick<EngineDeps, 'log'>,
  log: ConversationKey,
  drafts: EventDraft[],
): Promise<Appended> {
  const last = (await events.append(log, drafts)).at(-1);
  if (!last) throw new Error('the log gave no answer to an append');
  return last;
}

/** Appends under an id that somebody else may take first: then theirs counts, whatever they wrote. */
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
  if (!first) throw new TroupeError('internal', `the log gave no answer to ${draft.id}`);
  return first;
}

function opening(
  { deps, newId }: ConversationDeps,
  { author, to }: Message,
  { tasks, retired }: Participants,
): EventDraft[] {
  const by = () => ({ id: newId(), author, to: [] });
  const reopened: EventDraft[] = tasks.directions.archived
    ? [{ ...by(), kind: 'reopened', body: { reason: `a message of ${author.name}` } }]
    : [];
  const back = to.flatMap((agent): EventDraft[] => [
    ...(tasks.away.has(agent)
      ? [{ ...by(), kind: 'joined' as const, body: { agent, policy: policyOf(deps, tasks, agent) } }]
      : []),
    ...(retired.has(agent)
      ? [{ ...by(), kind: 'command' as const, body: { command: 'recall' as const, agent } }]
      : []),
  ]);
  return [...reopened, ...back];
}

/** What an agent sees of what came before it, as it was let in first. */
export function policyOf(
  { agents }: Pick<EngineDeps, 'agents'>,
  { joined }: Participants['tasks'],
  agent: AgentId,
): 'full' | 'summary' | 'fresh' {
  return joined.get(agent) ?? agents.get(agent)?.profile.join ?? 'full';
}
