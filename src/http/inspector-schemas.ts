import * as z from 'zod';
import {
  AgentId,
  ConversationId,
  EVENT_KINDS,
  EventId,
  Mode,
  CompactionReason,
  CompactionStrategy,
  TurnId,
} from '../events/index.ts';
import type { Projection, Row } from '../projection/model.ts';

/** What the inspector's routes answer, for those who read the API's description, and for tests. */
const Count = z.int().nonnegative();
const Tokens = z.strictObject({ input: Count, output: Count, cacheRead: Count, cacheWrite: Count });
const Problem = z.strictObject({ code: z.string(), message: z.string(), seq: Count });
const Place = z.strictObject({ conversation: ConversationId, seq: Count });
const Condition = z.enum(['failed', 'waiting', 'running', 'held', 'paused', 'idle', 'retired', 'left']);

const AgentView = z.strictObject({
  id: AgentId,
  name: z.string(),
  condition: Condition,
  state: z.string(),
  parked: z.enum(['paused', 'failed', 'retired']).nullable(),
  away: z.enum(['left', 'blocked']).nullable(),
  since: z.strictObject({ seq: Count, at: Count }),
  turn: TurnId.nullable(),
  lastTurn: TurnId.nullable(),
  pending: z.array(Count),
  seen: Count,
  turns: Count,
  failed: Count,
  tokens: Tokens,
  problem: Problem.nullable(),
});

const TurnView = z.strictObject({
  id: TurnId,
  agent: AgentId,
  number: Count,
  status: z.enum(['running', 'done', 'failed', 'aborted']),
  from: Count,
  to: Count.nullable(),
  startedAt: Count,
  endedAt: Count.nullable(),
  upTo: Count,
  inputs: z.array(Count),
  trigger: z.strictObject({ name: z.string(), text: z.string() }).nullable(),
  missed: z.strictObject({ count: Count, first: Count, last: Count }).nullable(),
  steps: Count,
  calls: z.array(
    z.strictObject({
      call: z.string(),
      name: z.string(),
      outcome: z.enum(['done', 'failed', 'lost', 'waiting']).nullable(),
      seq: Count,
    }),
  ),
  callCount: Count,
  tokens: Tokens,
  retries: Count,
  error: Problem.nullable(),
  handoff: z.strictObject({ to: z.array(AgentId), seq: Count }).nullable(),
  retried: Count.nullable(),
  said: z.string(),
});

const TaskView = z.strictObject({
  id: z.string(),
  kind: z.enum(['delegation', 'question', 'approval']),
  owner: AgentId,
  seq: Count,
  at: Count,
  text: z.string(),
  choices: z.array(z.string()),
  argsHash: z.string().nullable(),
  assignee: AgentId.nullable(),
  thread: ConversationId.nullable(),
  outcome: z.string().nullable(),
  endedAt: Count.nullable(),
});

const CompactionView = z.strictObject({
  seq: Count,
  at: Count,
  agent: AgentId,
  phase: z.enum(['started', 'pruned', 'summarising', 'done', 'failed']),
  reason: CompactionReason,
  strategy: CompactionStrategy.nullable(),
  range: z.strictObject({ from: Count, upTo: Count }).nullable(),
  tokens: z.strictObject({ before: Count, after: Count.nullable() }),
  reduced: Count.nullable(),
  summary: EventId.nullable(),
  summarySeq: Count.nullable(),
  message: z.string().nullable(),
  endedAt: Count.nullable(),
});

const ProjectionAnswer: z.ZodType<Projection> = z.strictObject({
  conversation: ConversationId,
  seq: Count,
  at: Count,
  began: Count,
  mode: Mode,
  phase: z.string().nullable(),
  archived: z.boolean(),
  agents: z.record(z.string(), AgentView),
  turns: z.array(TurnView),
  arrows: z.array(
    z.strictObject({
      seq: Count,
      at: Count,
      kind: z.enum(EVENT_KINDS as [(typeof EVENT_KINDS)[number]]),
      from: z.string(),
      isAgent: z.boolean(),
      to: z.array(AgentId),
    }),
  ),
  talk: z.array(
    z.strictObject({
      seq: Count,
      agent: AgentId.nullable(),
      name: z.string(),
      text: z.string(),
      shared: z.boolean(),
    }),
  ),
  tasks: z.array(TaskView),
  compactions: z.array(CompactionView),
  origin: Place.nullable(),
  forks: z.array(Place),
  totals: z.strictObject({
    events: Count,
    turns: Count,
    failed: Count,
    running: Count,
    compactions: Count,
    tokens: Tokens,
  }),
});

const RowAnswer: z.ZodType<Row> = z.strictObject({
  seq: Count,
  at: Count,
  kind: z.string(),
  level: z.enum(['talk', 'work', 'noise', 'problem']),
  author: z.string(),
  isAgent: z.boolean(),
  agent: AgentId.nullable(),
  to: z.array(AgentId),
  turn: TurnId.nullable(),
  summary: z.string(),
});

export const SnapshotAnswer = z.strictObject({
  seq: Count,
  head: Count,
  projection: ProjectionAnswer,
  actors: z.array(z.looseObject({ agent: AgentId, status: z.string(), state: z.string() })),
});

export const RowsAnswer = z.strictObject({
  rows: z.array(RowAnswer),
  head: Count,
  more: z.boolean(),
  next: Count.nullable(),
});

export const OverviewAnswer = z.strictObject({
  conversations: z.array(
    z.strictObject({
      id: ConversationId,
      head: Count,
      at: Count,
      condition: Condition.nullable(),
      agents: Count,
      failed: Count,
      running: Count,
      waiting: Count,
      compactions: Count,
      turns: Count,
    }),
  ),
  more: z.boolean(),
});

export const SearchAnswer = z.strictObject({
  hits: z.array(z.strictObject({ conversation: ConversationId, row: RowAnswer, excerpt: z.string() })),
  searched: z.strictObject({ conversations: Count, events: Count }),
  partial: z.boolean(),
});
