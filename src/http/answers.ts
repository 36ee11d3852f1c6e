import * as z from 'zod';
import { KeyRecord, Scope } from '../library/access/index.ts';
import {
  AgentId,
  Author,
  ConversationId,
  Cut,
  type Event,
  EVENT_KINDS,
  EventId,
  Mode,
  CompactionReason,
  CompactionStrategy,
  PromptRecord,
  RunTime,
  TurnId,
  TurnTimes,
} from '../events/index.ts';
import type { Projection, Row } from '../library/projection/model.ts';
import type { Tree } from '../library/projection/tree.ts';
import { MARK, type TimePage } from '../library/projection/time-page.ts';
import type {
  ActorStatus,
  InspectedPrompt,
  LogVerification,
  ProviderLoad,
  QueueReport,
  TurnQueue,
  SentPrompt,
  TaskList,
} from '../library/troupe.ts';

const Count = z.int().nonnegative();

/**
 * Schemas of the API's answers. Where the domain already has a type, `typed` gives the schema that type, and the OpenAPI
 * document describes only the part that clients need.
 */
export function typed<T>(json: object = { type: 'object' }): z.ZodType<T> {
  return z.custom<T>().meta({ ...json });
}

/** A list that may be split over several answers: `next` is the `skip` of the next one, null at the end. */
export type Part<T> = T & { next: number | null };

const NEXT = { type: ['integer', 'null'] };

export function partOf<T>(list: string, items: object, more: object = {}): z.ZodType<Part<T>> {
  const properties = { [list]: { type: 'array', items }, ...more, next: NEXT };
  return typed<Part<T>>({ type: 'object', properties });
}

/** The named schemas of the document. */
export const EventAnswer = typed<Event>({ $ref: '#/components/schemas/Event' });
const PROMPT = { $ref: '#/components/schemas/Prompt' };
export const NextPromptAnswer = typed<Part<InspectedPrompt>>(PROMPT);
export const SentPromptAnswer = typed<Part<SentPrompt>>(PROMPT);
export const Prompt = PromptRecord.extend({
  cached: z.object({ messages: Count, tokens: Count }),
  compaction: z.object({ at: Count, left: Count }),
  relief: z.object({ at: Count, left: Count }).meta({ deprecated: true }),
  cuts: z.array(
    Cut.extend({
      by: AgentId.optional(),
      strategy: z.enum(['summary', 'extraction']).optional(),
      trimmed: Count.optional(),
      steps: Count.optional(),
    }),
  ),
  triggers: z.array(z.object({ id: z.string(), seq: Count, kind: z.string(), author: Author })),
  role: z.enum(['manager', 'worker', 'peer']),
  settings: z
    .object({
      maxOutputTokens: Count,
      temperature: z.number().optional(),
      topP: z.number().optional(),
      seed: Count.optional(),
      stop: z.array(z.string()).optional(),
      thinking: z.union([z.literal('adaptive'), Count]).optional(),
      effort: z.string().optional(),
    })
    .nullable(),
});

const STRING = { type: 'string' };
const TASK = {
  type: 'object',
  properties: {
    id: STRING,
    kind: { enum: ['delegation', 'question', 'approval'] },
    owner: STRING,
    assignee: STRING,
    thread: STRING,
    text: STRING,
    attachments: { type: 'array', items: STRING },
    tool: STRING,
    args: STRING,
    argsHash: STRING,
    by: { type: 'array', items: STRING },
    decidable: { type: 'boolean' },
    choices: { type: 'array', items: STRING },
    deadline: { type: ['integer', 'null'] },
    openedAt: { type: 'object' },
    end: { type: ['object', 'null'] },
    group: STRING,
    join: { enum: ['all', 'first', 'any'] },
  },
  required: ['id', 'kind', 'owner', 'deadline', 'openedAt', 'end', 'group', 'join'],
};
export const TasksAnswer = partOf<TaskList>('tasks', TASK, { thread: { type: ['object', 'null'] } });

const LogProblemAnswer = z.discriminatedUnion('kind', [
  z.object({
    kind: z.enum(['altered', 'unreadable', 'unlinked']),
    seq: Count,
    id: z.string(),
    reason: z.string(),
  }),
  z.object({ kind: z.literal('missing'), seq: Count, upTo: Count }),
]);
export const VerificationAnswer: z.ZodType<LogVerification> = z.object({
  head: Count,
  events: Count,
  erased: Count,
  unchained: Count,
  begins: z.array(Count),
  problems: z.array(LogProblemAnswer),
  problemCount: Count,
  chain: z.string().nullable(),
  next: Count.nullable(),
});

export const QueuesAnswer: z.ZodType<Required<QueueReport>> = z.object({
  waiting: Count,
  active: Count,
  delayed: Count,
  failed: Count,
  wait: z.object({ p50Ms: z.number(), p95Ms: z.number(), count: Count }).nullable(),
  turns: typed<TurnQueue>(),
  providers: z.array(typed<ProviderLoad>()),
});

export const ReadinessAnswer = z.object({
  status: z.enum(['ok', 'unavailable', 'stopping']),
  store: z.string().optional(),
  queue: z.string().optional(),
});

export const CallerAnswer = z.object({
  id: z.string(),
  tenant: z.string(),
  scopes: z.array(Scope),
  author: Author.nullable(),
  conversations: z.array(z.string()).nullable(),
});

export const KeyAnswer = z.object({
  ...KeyRecord.omit({ hash: true, previous: true }).shape,
  createdBy: z.string().nullable(),
  /** When the secret before the last rotation expires, ms since the epoch. */
  previousUntil: Count.nullable(),
});
/** The only answer with the text of a key. */
export const IssuedKeyAnswer = z.object({ key: KeyAnswer, secret: z.string() });

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
  queuedAt: Count.nullable(),
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
      ran: RunTime.nullable(),
    }),
  ),
  callCount: Count,
  tokens: Tokens,
  retries: Count,
  error: Problem.nullable(),
  handoff: z.strictObject({ to: z.array(AgentId), seq: Count }).nullable(),
  retried: Count.nullable(),
  said: z.string(),
  times: TurnTimes.nullable(),
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
  deadline: Count.nullable(),
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

const Saying = z.strictObject({ name: z.string(), text: z.string() });
const Person = z.strictObject({ id: z.string(), name: z.string() });

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
  links: z.array(
    z.strictObject({
      from: z.string(),
      by: z.enum(['user', 'agent', 'system']),
      to: AgentId,
      messages: Count,
      tasks: Count,
      handoffs: Count,
      seq: Count,
    }),
  ),
  opening: Saying.nullable(),
  closing: Saying.nullable(),
  people: z.array(Person),
  talk: z.array(
    z.strictObject({
      seq: Count,
      agent: z.string().nullable(),
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
    unlinked: Count,
    tokens: Tokens,
  }),
});

export const TreeAnswer: z.ZodType<Tree> = z.strictObject({
  conversation: ConversationId,
  seq: Count,
  nodes: z.array(
    z.strictObject({
      id: z.string(),
      kind: z.enum(['turn', 'task']),
      parent: z.string().nullable(),
      conversation: ConversationId,
      seq: Count,
      from: z.string().nullable(),
      to: AgentId,
      text: z.string(),
      state: z.enum(['running', 'done', 'failed', 'aborted']),
      at: Count,
      endedAt: Count.nullable(),
      tokens: Tokens.nullable(),
      said: z.string(),
      turn: TurnId.nullable(),
      thread: ConversationId.nullable(),
    }),
  ),
  left: z.strictObject({ threads: Count, turns: Count, tasks: Count }),
});

const RowAnswer: z.ZodType<Row> = z.strictObject({
  seq: Count,
  at: Count,
  kind: z.string(),
  level: z.enum(['talk', 'work', 'noise', 'problem']),
  author: z.string(),
  isAgent: z.boolean(),
  agent: z.string().nullable(),
  to: z.array(AgentId),
  turn: TurnId.nullable(),
  summary: z.string(),
});

const TimePageAnswer: z.ZodType<TimePage> = z.strictObject({
  first: Count,
  at: Count,
  ms: z.array(z.int()),
  who: z.array(z.int()),
  agents: z.array(z.string()),
  what: z.array(z.literal(Object.values(MARK))),
  numbers: z.array(Count),
  threads: z.array(z.strictObject({ seq: Count, task: z.string(), thread: z.string() })),
  ended: z.array(z.strictObject({ seq: Count, task: z.string() })),
  times: z.array(z.strictObject({ seq: Count, times: TurnTimes })),
  tools: z.array(z.strictObject({ seq: Count, name: z.string(), ran: RunTime })),
});
export const TimesAnswer = z.strictObject({ page: TimePageAnswer, head: Count, next: Count.nullable() });

const Actor = z.looseObject({
  agent: AgentId,
  status: z.string(),
  state: z.string(),
}) as unknown as z.ZodType<ActorStatus>;

export const SnapshotAnswer = z.strictObject({
  seq: Count,
  head: Count,
  projection: ProjectionAnswer,
  actors: z.array(Actor),
  unaddressed: AgentId.nullable().optional(),
  events: z.array(EventAnswer).optional(),
});

export const RowsAnswer = z.strictObject({
  rows: z.array(RowAnswer),
  head: Count,
  more: z.boolean(),
  next: Count.nullable(),
});

export const SearchAnswer = z.strictObject({
  hits: z.array(
    z.strictObject({
      conversation: ConversationId,
      row: RowAnswer,
      excerpt: z.string(),
      /** Positions of the search terms in the excerpt. */
      marks: z.array(z.tuple([Count, Count])),
    }),
  ),
  unread: Count,
  next: z.string().nullable(),
});
