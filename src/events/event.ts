import * as z from 'zod';
import { BaselineBody } from './prompt.ts';
import { CommandBody } from './command.ts';
import { CompactionBody, CompactionNote, PruneBody } from './compaction.ts';
import * as coordination from './coordination.ts';
import { AgentId, ConversationId, EventId, Mode, TenantId, TurnId } from './ids.ts';
import { HandoffBody, InjectionBody, JoinedBody, LeftBody, MessageBody } from './message.ts';
import { SessionNote } from './session.ts';
import * as task from './task.ts';
import {
  ErrorBody,
  StepBody,
  ToolResultBody,
  TurnAbortedBody,
  TurnDoneBody,
  TurnFailedBody,
  TurnStartedBody,
} from './turn.ts';

/** Attachments of one event: more is refused before anything is stored. */
const MAX_ATTACHMENTS = 64;

const Hash = z.string().min(1).max(128);
export const Attachments = z.array(z.string().min(1).max(256)).max(MAX_ATTACHMENTS);

/**
 * What was injected into an event or attached to it, as ids and hashes: never the words themselves. The engine writes
 * it on `turn.started`, clients write `attachments` on what they send. No prompt is rendered from it.
 */
export const EventContext = z.strictObject({
  /** Hashes of the frozen layers in force; the texts are stored under them. */
  rules: Hash.optional(),
  persona: Hash.optional(),
  tools: Hash.optional(),
  environment: Hash.optional(),
  mode: Mode.optional(),
  run: z.string().optional(),
  /** By name: the hash of the text that a dynamic fragment gave for this turn, whether it was restated or not. */
  fragments: z.record(z.string(), Hash).optional(),
  /** Seqs of retrieved events. */
  memories: z.array(z.int().positive()).optional(),
  attachments: Attachments.optional(),
  /** Whom it would have addressed: its author may not address agents, and `dispatch` passes it on. */
  held: z.array(AgentId).min(1).optional(),
  /** A file brought it: it is history, and carries no authority here. */
  imported: z.literal(true).optional(),
  /** Its author was not trusted when it was said: see `trust.people`. */
  untrusted: z.literal(true).optional(),
  /** How its addressees were found, where it named none. */
  routed: z.enum(['agent', 'round', 'capability', 'rules']).optional(),
});
export type EventContext = z.infer<typeof EventContext>;

/** Who said it. The name is per event, because several people may speak through one bridge. */
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
