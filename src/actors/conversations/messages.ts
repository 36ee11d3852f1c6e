import { TroupeError } from '../../base/errors.ts';
import {
  type ActorAddress,
  type AgentId,
  type Author,
  type ConversationId,
  type Event,
  type EventContext,
  type EventDraft,
  type EventDraftOf,
  type EventId,
  type JoinPolicy,
  MAX_RECIPIENTS,
  type Mode,
  nearestName,
  conversationKey,
  isErasure,
  runtimeId,
} from '../../events/index.ts';
import type { Appended, ConversationKey } from '../../store/store.ts';
import { type EngineDeps, type Trust, isTrusted, requireTrusted } from '../actor/engine-deps.ts';
import { readOwn } from '../log/conversation-log.ts';
import { isRetired } from '../../machines/membership.ts';
import { type Participants, isHere, foldParticipants, newParticipants } from '../../machines/task-fold.ts';
import type { AgentRegistry } from '../actor/agent-runtime.ts';
import { type Directions, type Directives, directiveOf } from '../../machines/directions.ts';
import { type Checkpoints, NO_CHECKPOINTS, type PageSource } from '../log/read-log.ts';

/** Dependencies of the rules for messages, participants and commands. */
export interface ConversationDeps {
  deps: EngineDeps;
  engine: { resume(address: ActorAddress, as?: 'RETRY' | 'REINSTATE'): Promise<void> };
  participantsCache: ParticipantsCache;
  trust: Trust;
  /** Agent for messages that name no agent and match no route. */
  fallback: AgentId | null;
  /** Whether the agent to which a conversation was handed over comes before the fallback. */
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
type Addressed = readonly [Message] | readonly [EventDraftOf<'mode.changed'>, Message];

/**
 * Appends a message of a trusted person. The same append first makes the changes that the message implies: a closed
 * conversation is reopened, recipients that left rejoin, retired recipients are reinstated. A message that is already
 * stored implies nothing. `drafts` are the message, and before it the change of the mode that came with it.
 */
export async function appendTrusted(
  conversations: ConversationDeps,
  log: ConversationKey,
  drafts: Addressed,
  participants: Participants,
): Promise<Appended> {
  const { deps, engine } = conversations;
  const { away, unavailable, directions } = participants.tasks;
  if (away.size === 0 && unavailable.size === 0 && !directions.archived) return appendLast(deps, log, drafts);
  const message = drafts.at(-1) as Message;
  const changes = impliedChanges(conversations, message, participants);
  const isStored = changes.length > 0 && (await deps.store.readById(log, message.id)) !== null;
  if (!isStored) {
    // Done before the append, because after a crash an agent that is reinstated only in the log would never be resumed.
    for (const agent of message.to)
      if (isRetired(participants.tasks, agent)) await engine.resume({ ...log, agent }, 'REINSTATE');
  }
  return appendLast(deps, log, isStored ? drafts : [...changes, ...drafts]);
}

export async function appendLast(
  { log: events }: Pick<EngineDeps, 'log'>,
  log: ConversationKey,
  drafts: readonly EventDraft[],
): Promise<Appended> {
  const last = (await events.append(log, drafts)).at(-1);
  if (!last) throw new Error('the log did not return the appended event');
  return last;
}

/** Appends an event under an id that another writer may take first. Returns the stored event. */
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
    ? [{ ...by(), kind: 'command', body: { command: 'reopen', reason: `a message of ${author.name}` } }]
    : [];
  const joined = (agent: AgentId): EventDraft => ({
    ...by(),
    kind: 'membership.changed',
    body: { change: 'joined', agent, policy: joinPolicyOf(deps, tasks, agent) },
  });
  const back = to.flatMap((agent): EventDraft[] => [
    ...(tasks.away.has(agent) ? [joined(agent)] : []),
    ...(isRetired(tasks, agent)
      ? [{ ...by(), kind: 'command' as const, body: { command: 'recall' as const, agent } }]
      : []),
  ]);
  return [...reopened, ...back];
}

/** How much of the earlier conversation an agent sees: as when it first joined, otherwise as its profile says. */
export function joinPolicyOf(
  { agents }: Pick<EngineDeps, 'agents'>,
  { joined }: Participants['tasks'],
  agent: AgentId,
): JoinPolicy {
  return joined.get(agent) ?? agents.get(agent)?.profile.join ?? 'full';
}

/** The agents that a message addresses. Only `to` counts; names in the text never do. */
export function addressees(
  agents: AgentRegistry,
  message: { author: Author; to?: readonly string[] | undefined; replyTo?: string | undefined },
  fallback: AgentId | null,
): AgentId[] {
  const named = message.to ?? [];
  if (named.length > MAX_RECIPIENTS) {
    throw new TroupeError('event_invalid', `to: at most ${MAX_RECIPIENTS} recipients, got ${named.length}`, {
      path: 'to',
    });
  }
  const found = new Set<AgentId>();
  for (const name of named) found.add(resolveAgent(agents, name));
  if (found.size > 0) return [...found];
  const topLevel = message.author.kind === 'user' && message.replyTo === undefined;
  return topLevel && fallback ? [fallback] : [];
}

/** Finds an agent by id or pubkey. Throws `agent_unknown` with the known agents and the nearest name. */
export function resolveAgent(agents: AgentRegistry, name: string): AgentId {
  const plain = name.startsWith('@') ? name.slice(1) : name;
  const direct = agents.get(plain as AgentId);
  if (direct) return direct.profile.id;
  for (const runtime of agents.values()) if (runtime.pubkey === plain) return runtime.profile.id;
  const known = [...agents.keys()];
  const nearest = nearestName(plain, known);
  const hint = nearest ? ` Did you mean "${nearest}"?` : '';
  throw new TroupeError(
    'agent_unknown',
    `there is no agent "${plain}".${hint} Known: ${known.slice(0, 50).join(', ')}.`,
    { agent: plain, nearest, known: known.slice(0, 50) },
  );
}

/** A message before it is stored. */
interface ReceivedMessage {
  log: ConversationKey;
  message: Message;
  /** Whether a gateway passes it on for somebody who is not trusted. */
  untrusted: boolean;
  /** The mode of the conversation from this message on. Default: it stays. */
  mode?: Mode | undefined;
}

/**
 * Stores a message. Its recipients are decided here, once.
 *  M1  A message that names agents addresses them. A new message of a person that names none is routed; without a route it
 *      goes to the agent to which the conversation was handed over last, or to the default agent.
 *  M2  A message of an untrusted person, or one that a gateway marks `untrusted`, addresses no agent. The recipients that it
 *      would have had are stored with it.
 *  M3  An archived conversation accepts messages of trusted people only, which reopen it.
 *  M4  A message with a known id returns the stored event, whatever would be decided now.
 *  M5  A message may set the mode, in the same append, if its author may give commands.
 *
 * `prepare` is called with the addressed message before it is stored, and may refuse it by throwing.
 */
export async function receiveMessage(
  conversations: ConversationDeps,
  received: ReceivedMessage,
  prepare: (addressed: Message) => Promise<void>,
): Promise<Appended> {
  const { deps, participantsCache, trust } = conversations;
  const { log, message, untrusted } = received;
  const participants = await participantsCache.of(log);
  const isHeld = untrusted || !isTrusted(trust, message.author);
  const change =
    received.mode === undefined ? null : await modeChange(conversations, received, received.mode);
  const addressed = await addressMessage(conversations, received, participants, isHeld);
  const isTrustedPerson = message.author.kind === 'user' && !isHeld;
  const isClosed = !isTrustedPerson && participants.tasks.directions.archived;
  if (isClosed && (await deps.store.readById(log, message.id)) === null) throw archived(log);
  await prepare(addressed);
  const drafts: Addressed = change ? [change, addressed] : [addressed];
  try {
    return isTrustedPerson
      ? await appendTrusted(conversations, log, drafts, participants)
      : await appendLast(deps, log, drafts);
  } catch (error) {
    // If the message was sent twice concurrently and routed differently, the first one counts.
    const isRouted = addressed.context?.routed !== undefined;
    if (!isRouted || !(error instanceof TroupeError) || error.code !== 'event_conflict') throw error;
    return appendLast(deps, log, [await addressMessage(conversations, received, participants, isHeld)]);
  }
}

/**
 * The change of the mode that comes with a message; null if the message is stored already. Throws `command_refused` for an
 * author who may not set it, and `event_conflict` if the stored message had another mode.
 */
async function modeChange(
  { deps, trust }: ConversationDeps,
  { log, message: { id, author }, untrusted }: ReceivedMessage,
  mode: Mode,
): Promise<EventDraftOf<'mode.changed'> | null> {
  requireTrusted(trust, author, 'set the mode');
  if (untrusted) throw new TroupeError('command_refused', 'an untrusted message sets no mode');
  const stored = await deps.store.readById(log, id);
  if (!stored) return { id: runtimeId(id, 'mode'), author, to: [], kind: 'mode.changed', body: { mode } };
  if (stored.context?.mode === mode) return null;
  throw new TroupeError('event_conflict', `message "${id}" is stored already, in another mode`, { id });
}

/**
 * Stores a notice for people, which wakes nobody and changes nothing. Throws `conversation_archived`. `prepare` is called
 * before it is stored.
 */
export async function receiveNotice(
  { deps, participantsCache }: ConversationDeps,
  log: ConversationKey,
  notice: EventDraftOf<'notice'>,
  prepare: () => Promise<void>,
): Promise<Appended> {
  const { tasks } = await participantsCache.of(log);
  if (tasks.directions.archived && (await deps.store.readById(log, notice.id)) === null) throw archived(log);
  await prepare();
  return appendLast(deps, log, [notice]);
}

async function addressMessage(
  conversations: ConversationDeps,
  { log, message, mode }: ReceivedMessage,
  participants: Participants,
  isHeld: boolean,
): Promise<Message> {
  const { directives, directions: before } = participants.tasks;
  const directions = mode === undefined ? before : { ...before, mode, run: null };
  const { to, routed } =
    message.to.length > 0
      ? { to: message.to, routed: undefined }
      : await recipientsOf(conversations, log, message, participants);
  const held = to.length > 0 && isHeld ? { held: to } : {};
  const mark =
    isHeld && (await isMarked(conversations.deps.store, log, message)) ? { untrusted: true as const } : {};
  const context = {
    ...message.context,
    ...(directions.mode && modeIn(directions, directives)),
    ...held,
    ...mark,
    ...(routed && { routed }),
  };
  return {
    ...message,
    to: 'held' in held ? [] : to,
    ...(Object.keys(context).length > 0 && { context }),
  };
}

function modeIn(directions: Directions, directives: Directives): Message['context'] {
  const run = directiveOf(directions, directives)?.run;
  return { ...(directions.mode && { mode: directions.mode }), ...(run !== undefined && { run }) };
}

/** Whether the message is marked as untrusted. A message that is sent again keeps the mark of the first time (M4). */
async function isMarked(
  store: ConversationDeps['deps']['store'],
  log: ConversationKey,
  { id }: Message,
): Promise<boolean> {
  const known = await store.readById(log, id);
  return known === null || known.context?.untrusted === true;
}

interface Recipients {
  to: AgentId[];
  routed?: NonNullable<Message['context']>['routed'] | undefined;
}

async function recipientsOf(
  conversations: ConversationDeps,
  log: ConversationKey,
  { id, author, to, replyTo, body }: Message,
  participants: Participants,
): Promise<Recipients> {
  const { deps, router, sticks } = conversations;
  const { handedTo } = participants;
  const isNewRequest = author.kind === 'user' && replyTo === undefined;
  if (!isNewRequest) return { to };
  const known = router || (sticks && handedTo) ? await knownRecipients(deps.store, log, id) : null;
  if (known) return known;
  if (router) {
    const attachments = (body.attachments ?? []).map(({ mediaType }) => mediaType);
    const found = router.find(
      { conversation: log.conversation, author, content: body.content, attachments },
      { isHere: (agent) => isHere(participants, agent), askedAt: (agent) => participants.asked.get(agent) },
    );
    if (found.length > 0) return { to: found, routed: router.by };
  }
  const agent = unroutedRecipient(conversations, participants);
  if (agent === null) return { to: [] };
  return { to: [agent], routed: sticks && agent === handedTo ? 'handoff' : undefined };
}

/** The agent that a person's message to nobody goes to where no route matches. Null: none. */
export function unroutedRecipient(
  { fallback, sticks }: Pick<ConversationDeps, 'fallback' | 'sticks'>,
  participants: Participants,
): AgentId | null {
  const candidates = sticks ? [participants.handedTo, fallback] : [fallback];
  return candidates.find((agent) => agent !== null && isHere(participants, agent)) ?? null;
}

/** The recipients of the message when it was first sent (M4). */
async function knownRecipients(
  store: ConversationDeps['deps']['store'],
  log: ConversationKey,
  id: Message['id'],
): Promise<Recipients | null> {
  const known = await store.readById(log, id);
  if (known?.kind !== 'message') return null;
  return { to: known.context?.held ?? known.to, routed: known.context?.routed };
}

function archived({ conversation }: ConversationKey): TroupeError {
  const message = `conversation ${conversation} is archived: reopen it first`;
  return new TroupeError('conversation_archived', message, { conversation });
}

/** Cached participants of conversations. Every entry can be rebuilt from the log. */
export interface ParticipantsCache {
  of(log: ConversationKey): Promise<Participants>;
  forget(log: ConversationKey): void;
}

/** Maximum conversations. The least recently used is dropped first. */
const KEPT = 1_024;
const SUBJECT = 'participants';

interface Entry {
  participants: Participants;
  stored: number;
}

export function createParticipantsCache(
  events: PageSource,
  checkpoints: Checkpoints = NO_CHECKPOINTS,
): ParticipantsCache {
  const known = new Map<string, Entry>();

  async function store(log: ConversationKey, entry: Entry, upTo: number): Promise<void> {
    entry.stored = upTo;
    const place = await checkpoints.mark(log, upTo);
    // The entry was extended or dropped meanwhile, so a later call stores it.
    if (entry.participants.tasks.upTo !== upTo || known.get(conversationKey(log)) !== entry) return;
    if (place) checkpoints.save(log, SUBJECT, place, [structuredClone(entry.participants)]);
  }

  return {
    async of(log) {
      const key = conversationKey(log);
      let entry = known.get(key) ?? (await restored(checkpoints, log));
      if (await catchUp(events, log, entry.participants)) {
        known.delete(key);
        entry = { participants: newParticipants(), stored: 0 };
        await catchUp(events, log, entry.participants);
      }
      known.delete(key);
      known.set(key, entry);
      if (known.size > KEPT) known.delete(known.keys().next().value ?? key);
      const { upTo, tasks } = entry.participants.tasks;
      // A fold of many tasks is stored less often, because it is large.
      if (upTo - entry.stored >= Math.max(checkpoints.least, tasks.size)) void store(log, entry, upTo);
      return entry.participants;
    },
    forget: (log) => void known.delete(conversationKey(log)),
  };
}

async function restored(checkpoints: Checkpoints, log: ConversationKey): Promise<Entry> {
  const found = await checkpoints.load(log, SUBJECT);
  if (!found) return { participants: newParticipants(), stored: 0 };
  return { participants: found.parts[0] as Participants, stored: found.seq };
}

/** Reads participants without the cache, for a single use. */
export async function participantsOf(
  events: PageSource,
  log: ConversationKey,
  checkpoints: Checkpoints = NO_CHECKPOINTS,
): Promise<Participants> {
  const { participants } = await restored(checkpoints, log);
  if (!(await catchUp(events, log, participants))) return participants;
  const again = newParticipants();
  await catchUp(events, log, again);
  return again;
}

/**
 * Folds new events. Concurrent callers are harmless, because folding an event twice changes nothing. Returns true if words of
 * folded events were erased, so that the log must be folded again from its first event.
 */
async function catchUp(
  events: PageSource,
  log: ConversationKey,
  participants: Participants,
): Promise<boolean> {
  const hasOld = participants.tasks.upTo > 0;
  for (let isLast = false; !isLast;) {
    const page = await events.readPage(log, { after: participants.tasks.upTo });
    for (const event of page.events) {
      if (event.kind === 'command' && hasOld && isErasure(event)) {
        events.forget?.(log);
        return true;
      }
      foldParticipants(participants, event);
    }
    isLast = page.isLast;
  }
  return false;
}
