import * as z from 'zod';
import * as bodies from './bodies.ts';
import { BusyPolicy } from './coordination.ts';
import { AgentId, ConversationId, EventId, Mode, Seq, TenantId, TurnId } from './ids.ts';
import { type BodySchema, EVENT_KINDS, type EventKind, KINDS } from './kinds.ts';
import { AskedReply, JsonData } from './message.ts';
import { NamedSession } from './session.ts';

const Hash = z.string().min(1).max(128);
/** Opaque ids that a client sets. */
export const Attachments = z.array(z.string().min(1).max(256)).max(64);

/** Most tools that a turn's record names. */
export const MAX_TOOLSET = 64;

/** The tools granted in a turn, by name. A call of one that needs approval may wait for a person. */
const Toolset = z.strictObject({
  free: z.array(z.string()).max(MAX_TOOLSET),
  approval: z.array(z.string()).max(MAX_TOOLSET),
  /** Number of tools that are not named. */
  more: z.int().positive().optional(),
});

/** Where a message came from: `library`, `http`, `cli`, `nostr`, or the name of a gateway. */
export const Channel = z
  .string()
  .regex(/^[a-z][a-z0-9-]{0,31}$/, 'a channel is a short word of a-z, 0-9 and -');

/**
 * Ids and hashes of what was injected into an event or attached to it, never the text itself. The engine writes it on
 * `turn.started`; clients write `attachments` on their own events. No prompt is rendered from it.
 */
export const EventContext = z.strictObject({
  /** Hashes of the frozen layers in force. Their texts are stored under these hashes. */
  rules: Hash.optional(),
  persona: Hash.optional(),
  tools: Hash.optional(),
  environment: Hash.optional(),
  /** The tools of the turn. `tools` is the hash of their whole definitions. */
  toolset: Toolset.optional(),
  /** The mode and the run in force: on `turn.started`, on the reply of the turn, and on messages of clients. */
  mode: Mode.optional(),
  run: z.string().optional(),
  /** Dynamic fragments by name: the hash of each text at this turn, whether or not the turn shows it again. */
  fragments: z.record(z.string(), Hash).optional(),
  /** Retrieved events. */
  memories: z.array(Seq).optional(),
  attachments: Attachments.optional(),
  /** Intended addressees of an author who may not address agents. `dispatch` passes the event on to them. */
  held: z.array(AgentId).min(1).optional(),
  /** The event is from an imported file: see `kinds.ts`. */
  imported: z.literal(true).optional(),
  /** The author was not trusted at the time: see `trust.people`. */
  untrusted: z.literal(true).optional(),
  /** The door through which a message or notice came. Absent in older logs, and on events of the runtime. */
  channel: Channel.optional(),
  /** Data for tools that the application sent with the message and asked to store. */
  forTools: JsonData.optional(),
  /** The form in which the message wants its answer. */
  reply: AskedReply.optional(),
  /** A session that the message names for one of its addressees. */
  session: NamedSession.optional(),
  /** The rule that chose the addressees of a message that named none. */
  routed: z.enum(['agent', 'round', 'capability', 'rules', 'handoff']).optional(),
});
export type EventContext = z.infer<typeof EventContext>;

/** Author of an event. The name is per event, because several people may speak through one bridge. */
export const Author = z.strictObject({
  kind: z.enum(['user', 'agent', 'system']),
  id: z.string().min(1).max(128),
  name: z.string().min(1).max(200),
});
export type Author = z.infer<typeof Author>;

export function agentAuthor(agent: { id: string; name: string }): Author {
  return { kind: 'agent', id: agent.id, name: agent.name };
}

export const SYSTEM_AUTHOR: Author = { kind: 'system', id: 'troupe', name: 'Troupe' };

type Bodies = { [K in EventKind]: z.infer<BodySchema<K>> };

/** Most addressees of one event. */
export const MAX_RECIPIENTS = 256;

/** The part of an event that its writer supplies. */
const DraftEnvelope = z.strictObject({
  /** Minted by the writer before the write: the idempotency key. */
  id: EventId,
  author: Author,
  to: z.array(AgentId).max(MAX_RECIPIENTS),
  turn: TurnId.optional(),
  replyTo: EventId.optional(),
  /** Number of messages from agent to agent since a person last spoke. */
  hop: z.int().nonnegative().optional(),
  /** Policy for addressees in a turn. Default: the policy of each agent. */
  whileBusy: BusyPolicy.optional(),
  context: EventContext.optional(),
});
type DraftEnvelope = z.infer<typeof DraftEnvelope>;

/** The part that the log adds at the append. */
const LogEnvelope = DraftEnvelope.extend({
  tenant: TenantId,
  conversation: ConversationId,
  seq: Seq,
  /** Ms since the epoch. For display only: `seq` is the order. */
  at: z.int().nonnegative(),
  /** Counted once, at the append. */
  tokens: z.int().nonnegative(),
  /** The stored row was changed after the append. Set when it is read, never stored. */
  altered: z.literal(true).optional(),
  /**
   * Ids in the log of agents that have been renamed since: the author's, and those of all addressees. Set when it is
   * read, never stored.
   */
  formerly: z.strictObject({ author: AgentId.optional(), to: z.array(AgentId).optional() }).optional(),
  /** Its words were erased: id of the command that did it. Stored with the rest of the event. */
  erased: EventId.optional(),
});
type LogEnvelope = z.infer<typeof LogEnvelope>;

export type EventDraftOf<K extends EventKind> = { [P in K]: DraftEnvelope & { kind: P; body: Bodies[P] } }[K];
/** The event of a kind. */
export type EventOf<K extends EventKind> = { [P in K]: LogEnvelope & { kind: P; body: Bodies[P] } }[K];

/** An event before its append. */
export type EventDraft = EventDraftOf<EventKind>;
export const EventDraft = unionOf(membersOf(DraftEnvelope)) as unknown as z.ZodType<EventDraft>;

/** One immutable record of a conversation. The store, the API, the CLI and the page share this schema. */
export type Event = EventOf<EventKind>;
const MEMBERS = membersOf(LogEnvelope);
export const Event = unionOf(MEMBERS) as unknown as z.ZodType<Event>;

const BY_KIND = new Map<string, z.ZodType>(EVENT_KINDS.map((kind, index) => [kind, MEMBERS[index]!]));

/** The part of `Event` for one kind. The first use of the whole compiles the schemas of all kinds, which takes 30 ms. */
export function eventSchema(kind: string): z.ZodType<Event> {
  return (BY_KIND.get(kind) as z.ZodType<Event> | undefined) ?? Event;
}

/** Built from the table of bodies. TypeScript cannot follow a mapped discriminated union, hence the casts of the results. */
function unionOf(members: ReturnType<typeof membersOf>) {
  return z.discriminatedUnion('kind', members as unknown as [(typeof members)[number]]);
}

function membersOf(envelope: typeof DraftEnvelope | typeof LogEnvelope) {
  return EVENT_KINDS.map((kind) => {
    // oxlint-disable-next-line import/namespace -- the table of kinds holds only names of bodies
    const body = bodies[KINDS[kind].body];
    return envelope.extend({ kind: z.literal(kind), body });
  });
}

/** The event if it is of this kind, else null. */
export function eventOf<K extends EventKind>(event: Event, kind: K): EventOf<K> | null {
  return event.kind === kind ? (event as EventOf<K>) : null;
}

/** Whether the event erases words of earlier events. */
export function isErasure(event: Event): event is EventOf<'command'> {
  return event.kind === 'command' && event.body.erasure !== undefined;
}

/** Whether a conversation is the thread of a task, and of which conversation. */
export interface ConversationKind {
  /** `thread`: it was opened for a task. */
  kind: 'conversation' | 'thread';
  /** The conversation that its task was given in. Null: it is no thread. */
  parent: ConversationId | null;
}

/** Determined by the first event, which opens a thread. The form of an id proves nothing, because people may choose it. */
export function kindOf(id: string, first: Event | undefined): ConversationKind {
  if (first?.kind === 'delegation.opened' && first.body.thread === id)
    return { kind: 'thread', parent: first.body.home };
  return { kind: 'conversation', parent: null };
}
