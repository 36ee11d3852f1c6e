import * as z from 'zod';
import { ActorAddress, ConversationId, TurnId } from './ids.ts';
import { EventContext, EventDraft } from './event.ts';
import { GuardStoppedBody, TurnSteeredBody } from './coordination.ts';
import { Session } from './session.ts';
import { LiveItems, ToolCall } from './turn.ts';
import { TaskId } from './task.ts';

/** Why a turn asks no model: its task was aborted from above, or a guard stopped it. It still settles its inputs. */
export const Halt = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('task aborted') }),
  GuardStoppedBody.extend({ kind: z.literal('guard') }),
]);
export type Halt = z.infer<typeof Halt>;

/** The inputs of one activation, fixed before any work, so that a retry after a crash sees the same. */
export const PinnedTurn = z.strictObject({
  id: TurnId,
  /** The head of the log when pinned: nothing newer is in the prompt. */
  upTo: z.int().nonnegative(),
  /** Seqs of the addressed events this turn will cover. */
  inputs: z.array(z.int().positive()),
  /** How often the turn was started; raised by compare-and-set before work, so that kill -9 is counted. */
  attempt: z.int().nonnegative(),
  live: LiveItems,
  join: z.enum(['full', 'summary', 'fresh']),
  baseline: z.string(),
  hop: z.int().nonnegative(),
  /** Time of the trigger, ms, as the log has it. */
  at: z.int().nonnegative().optional(),
  /** Of its `turn.started`. */
  context: EventContext.optional(),
  /** Calls that were approved: the turn makes them before anything else. */
  approved: z.array(ToolCall).optional(),
  /** As in its `turn.started`. */
  rendering: z.int().positive().optional(),
  /** No model is asked. */
  halt: Halt.optional(),
  /** A person speaks: it goes on though the task of its thread was called off. */
  byPerson: z.literal(true).optional(),
  /** What was taken in between two steps, oldest first. */
  steered: z.array(TurnSteeredBody).optional(),
});
export type PinnedTurn = z.infer<typeof PinnedTurn>;

/**
 * An event for any conversation of the tenant, this one included, under an id that somebody else may take first: then
 * theirs counts, and this one is dropped.
 */
export const OutgoingEvent = z.strictObject({ conversation: ConversationId, draft: EventDraft });
export type OutgoingEvent = z.infer<typeof OutgoingEvent>;

/** What is posted when its time has come, unless the actor has done it before. */
export const Timer = z.strictObject({
  /** Ms since the epoch. */
  at: z.int().nonnegative(),
  posts: z.array(OutgoingEvent).min(1),
  /** Of whose deadline it is: with the task it ends. */
  task: TaskId.optional(),
});
export type Timer = z.infer<typeof Timer>;

/**
 * Version of the record and of the machine whose snapshot it holds. Raise it with any change that older code would read
 * wrongly: processes of two versions work side by side while a deploy rolls.
 */
export const ACTOR_VERSION = 6;

/** Why an actor takes no turns; null when it does. */
export const Unavailability = z.enum(['paused', 'failed', 'retired']);
export type Unavailability = z.infer<typeof Unavailability>;

/** The persisted state of one agent in one conversation. Changed only under its fence, `cancel` and `parked` excepted. */
export const ActorRecord = ActorAddress.extend({
  /** Rises with every lease; a write that names an older fence changes nothing. */
  fence: z.int().nonnegative(),
  /** Nonce of the present holder; empty when free. */
  owner: z.string(),
  /** Lease end, ms since the epoch; 0 when free. Liveness only: the fence decides. */
  until: z.int().nonnegative(),
  /** lastProcessedIndex: the seq up to which this agent has settled the log. */
  processed: z.int().nonnegative(),
  turnNo: z.int().nonnegative(),
  lastTurn: TurnId.nullable(),
  /** The state of its machine at rest, as JSON text. */
  snapshot: z.string().nullable(),
  machineVersion: z.int().nonnegative(),
  session: Session.nullable(),
  cursor: z.int().nonnegative().nullable(),
  turn: PinnedTurn.nullable(),
  /** How often a holder was lost before it had pinned a turn: the process died or stood still while it read the log. */
  lost: z.int().nonnegative().default(0),
  /** The turn that someone asked to stop; a commit of that turn is refused. */
  cancel: TurnId.nullable(),
  parked: Unavailability.nullable(),
  /** Events committed with the state and not yet seen in the log. */
  outbox: z.array(EventDraft),
  /** Sent after the outbox, to whichever conversation each names. */
  posts: z.array(OutgoingEvent).default([]),
  timers: z.array(Timer).default([]),
});
export type ActorRecord = z.infer<typeof ActorRecord>;

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
    cancel: null,
    parked: null,
    outbox: [],
    posts: [],
    timers: [],
  };
}
