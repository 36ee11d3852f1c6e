import * as z from 'zod';
import { ActorAddress, AgentId, ConversationId, EventId, JoinPolicy, Seq, TurnId } from './ids.ts';
import { EventContext, EventDraft } from './event.ts';
import { GuardStoppedBody, TurnSteeredBody } from './coordination.ts';
import { NamedSession, Session } from './session.ts';
import { AskedReply } from './message.ts';
import { LiveItems, ToolCall } from './turn.ts';
import { TaskId } from './task.ts';

/** Why a turn calls no model: its task was cancelled, or a guard stopped it. The turn still settles its inputs. */
export const TurnRefusal = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('task cancelled') }),
  GuardStoppedBody.extend({ kind: z.literal('guard') }),
]);
export type TurnRefusal = z.infer<typeof TurnRefusal>;

/** The inputs of one turn, stored before any work so that a retry after a crash sees the same. */
export const PinnedTurn = z.strictObject({
  id: TurnId,
  /** The head of the log when pinned. The prompt shows nothing newer. */
  upTo: z.int().nonnegative(),
  /** The addressed events that this turn will cover. */
  inputs: z.array(Seq),
  /** Number of starts of the turn. Raised by compare-and-set before the work, so that a `kill -9` counts. */
  attempt: z.int().nonnegative(),
  live: LiveItems,
  join: JoinPolicy,
  baseline: z.string(),
  hop: z.int().nonnegative(),
  /** Time of the trigger in the log, ms since the epoch. */
  at: z.int().nonnegative().optional(),
  /** Context of the `turn.started` event. */
  context: EventContext.optional(),
  /** Approved calls. The turn executes them before anything else. */
  approved: z.array(ToolCall).optional(),
  /** As in `TurnStartedBody`. */
  peers: z.literal('system').optional(),
  framing: z.literal('plain').optional(),
  sees: z.literal('results').optional(),
  /** Present if the turn calls no model. */
  refusal: TurnRefusal.optional(),
  /** An input is by a person, so the turn runs even if the task of its thread was cancelled. */
  byPerson: z.literal(true).optional(),
  /** The form in which an input wants its answer. If several inputs name one, that of the last. */
  reply: AskedReply.optional(),
  /** The session that an input names for this agent. */
  session: NamedSession.optional(),
  /** The event that records which turn this one repeats, and with which change. */
  rerun: EventId.optional(),
  /** Inputs taken in between two steps, oldest first. */
  steered: z.array(TurnSteeredBody).optional(),
});
export type PinnedTurn = z.infer<typeof PinnedTurn>;

/** An event for any conversation of the tenant. If another writer has taken its id first, this event is dropped. */
export const OutgoingEvent = z.strictObject({ conversation: ConversationId, draft: EventDraft });
export type OutgoingEvent = z.infer<typeof OutgoingEvent>;

/** Events to be sent at a given time, unless the actor sends them earlier. */
export const Timer = z.strictObject({
  /** Ms since the epoch. */
  at: z.int().nonnegative(),
  posts: z.array(OutgoingEvent).min(1),
  /** The task whose deadline this is. The timer is dropped when the task ends. */
  task: TaskId.optional(),
});
export type Timer = z.infer<typeof Timer>;

/**
 * Version of the record and of the machine snapshot in it. Raise it with any change that older code would misread:
 * processes of two versions run side by side during a rolling deploy.
 */
export const ACTOR_VERSION = 1;

/** Why an actor begins no turns. */
export const Unavailability = z.enum(['paused', 'failed', 'retired']);
export type Unavailability = z.infer<typeof Unavailability>;

/** The persisted state of one agent in one conversation. A write needs the current fence, except for `abort` and `parked`. */
export const ActorRecord = ActorAddress.extend({
  /** Rises with every lease. A write with an older fence changes nothing. */
  fence: z.int().nonnegative(),
  /** Nonce of the lease holder; empty when free. */
  owner: z.string(),
  /** End of the lease, ms since the epoch; 0 when free. For liveness only: the fence decides. */
  until: z.int().nonnegative(),
  /** The seq up to which this agent has settled the log; `lastProcessedIndex` in the API. */
  processed: z.int().nonnegative(),
  turnNo: z.int().nonnegative(),
  lastTurn: TurnId.nullable(),
  /** State of the machine between turns, as JSON text. */
  snapshot: z.string().nullable(),
  machineVersion: z.int().nonnegative(),
  session: Session.nullable(),
  cursor: z.int().nonnegative().nullable(),
  turn: PinnedTurn.nullable(),
  /** Number of lease holders lost before they had pinned a turn: the process died or hung while it read the log. */
  lost: z.int().nonnegative().default(0),
  /** The turn that is to stop. A commit of this turn is refused. */
  abort: TurnId.nullable(),
  /** Null if the agent takes turns. */
  parked: Unavailability.nullable(),
  /** Events of its last turn may still be missing in the log: the store appends them before the next lease. */
  unpublished: z.boolean().default(false),
  timers: z.array(Timer).default([]),
  /** Former ids of the agent. The records under these ids were merged into this one. */
  took: z.array(AgentId).optional(),
});
export type ActorRecord = z.infer<typeof ActorRecord>;

/** The record of an agent that has done nothing yet. */
export function newActorRecord(address: ActorAddress): ActorRecord {
  return {
    ...address,
    fence: 0,
    owner: '',
    until: 0,
    processed: 0,
    turnNo: 0,
    lastTurn: null,
    snapshot: null,
    machineVersion: 0,
    session: null,
    cursor: null,
    turn: null,
    lost: 0,
    abort: null,
    parked: null,
    unpublished: false,
    timers: [],
  };
}
