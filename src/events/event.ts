import * as z from 'zod';
import { Author } from './author.ts';
import { BaselineBody } from './baseline.ts';
import { CommandBody } from './command.ts';
import { CompactionBody, CompactionNote, PruneBody } from './compaction.ts';
import * as coordination from './coordination.ts';
import { EventContext } from './event-context.ts';
import { AgentId, ConversationId, EventId, TenantId, TurnId } from './ids.ts';
import { HandoffBody, InjectionBody, JoinedBody, LeftBody, MessageBody } from './message.ts';
import { SessionNote } from './session.ts';
import * as task from './task.ts';
import { StepBody, ToolResultBody } from './step.ts';
import { ErrorBody, TurnAbortedBody, TurnDoneBody, TurnFailedBody, TurnStartedBody } from './turn.ts';

/**
 * The event: one immutable record of a conversation. One schema set for the store, the API, the CLI and the page.
 * `id` is minted by the writer before the write and is the idempotency key; `seq` is given by the log, dense from 1.
 */
const BODIES = {
  message: MessageBody,
  step: StepBody,
  'tool.result': ToolResultBody,
  handoff: HandoffBody,
  'delegation.opened': task.DelegationOpenedBody,
  'delegation.completed': task.DelegationEndedBody,
  'delegation.aborted': task.DelegationEndedBody,
  question: task.QuestionBody,
  'question.answered': task.QuestionAnsweredBody,
  'approval.requested': task.ApprovalRequestedBody,
  'approval.decided': task.ApprovalDecidedBody,
  joined: JoinedBody,
  left: LeftBody,
  'mode.changed': coordination.ModeChangedBody,
  'phase.changed': coordination.PhaseChangedBody,
  'run.directive': coordination.RunDirectiveBody,
  'guard.stopped': coordination.GuardStoppedBody,
  todos: coordination.TodosBody,
  archived: coordination.ArchivedBody,
  reopened: coordination.ArchivedBody,
  injection: InjectionBody,
  error: ErrorBody,
  compaction: CompactionBody,
  'compaction.started': CompactionNote,
  'compaction.pruned': CompactionNote,
  'compaction.summarising': CompactionNote,
  'compaction.done': CompactionNote,
  'compaction.failed': CompactionNote,
  prune: PruneBody,
  baseline: BaselineBody,
  'session.started': SessionNote,
  'session.resumed': SessionNote,
  'session.rewound': SessionNote,
  'session.compacted': SessionNote,
  'session.lost': SessionNote,
  'session.rebuilt': SessionNote,
  'turn.started': TurnStartedBody,
  'turn.steered': coordination.TurnSteeredBody,
  'turn.done': TurnDoneBody,
  'turn.failed': TurnFailedBody,
  'turn.aborted': TurnAbortedBody,
  command: CommandBody,
} as const;

type Bodies = { [K in keyof typeof BODIES]: z.infer<(typeof BODIES)[K]> };
export type EventKind = keyof Bodies;
export const EVENT_KINDS = Object.keys(BODIES) as EventKind[];

/** At most this many addressees; more is refused before anything is stored. */
export const MAX_RECIPIENTS = 256;

/** What a writer supplies. `hop` counts what agents have passed on to agents since a human last spoke. */
const DraftEnvelope = z.strictObject({
  id: EventId,
  author: Author,
  to: z.array(AgentId).max(MAX_RECIPIENTS),
  turn: TurnId.optional(),
  replyTo: EventId.optional(),
  hop: z.int().nonnegative().optional(),
  /** Where an addressed agent is at work; the agent's own policy otherwise. */
  whileBusy: coordination.BusyPolicy.optional(),
  context: EventContext.optional(),
});
type DraftEnvelope = z.infer<typeof DraftEnvelope>;

/** What the log adds. `tokens` is counted once, here, and summed ever after. */
const LogEnvelope = DraftEnvelope.extend({
  tenant: TenantId,
  conversation: ConversationId,
  seq: z.int().positive(),
  /** Milliseconds since the epoch; for reading only, order is `seq`. */
  at: z.int().nonnegative(),
  tokens: z.int().nonnegative(),
});
type LogEnvelope = z.infer<typeof LogEnvelope>;

export type EventDraftOf<K extends EventKind> = { [P in K]: DraftEnvelope & { kind: P; body: Bodies[P] } }[K];
export type EventOf<K extends EventKind> = { [P in K]: LogEnvelope & { kind: P; body: Bodies[P] } }[K];
export type EventDraft = EventDraftOf<EventKind>;
export type Event = EventOf<EventKind>;

function unionOf(envelope: typeof DraftEnvelope | typeof LogEnvelope) {
  const members = EVENT_KINDS.map((kind) => envelope.extend({ kind: z.literal(kind), body: BODIES[kind] }));
  return z.discriminatedUnion('kind', members as unknown as [(typeof members)[number]]);
}

// The unions are built from the table above; TypeScript cannot follow a mapped discriminated union, hence the two casts.
export const EventDraft = unionOf(DraftEnvelope) as unknown as z.ZodType<EventDraft>;
export const Event = unionOf(LogEnvelope) as unknown as z.ZodType<Event>;

/** The event, typed by its kind, or null. */
export function eventOf<K extends EventKind>(event: Event, kind: K): EventOf<K> | null {
  return event.kind === kind ? (event as EventOf<K>) : null;
}
