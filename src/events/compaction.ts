import * as z from 'zod';
import { AgentId, EventId, Seq, TurnId } from './ids.ts';
import { Usage } from './turn.ts';

/**
 * Every lossy change of a view is an event. Prompts are rendered from these events: no decision is made twice.
 *
 *   compaction   A neutral summary of an earlier part of the log, for all agents. Changes no view by itself.
 *   baseline     With `adopts`: from here on, one agent's view begins with a compaction (a new epoch).
 *   prune        From here on, one agent's view shows some of its own tool results as placeholders.
 *   compaction.progress   For people. No view reads it.
 */

/**
 * Why a view is compacted. `overflow`: a provider refused the request as too long. `manual`: a person asked for it.
 * `each_turn`: the agent is set to begin its turns without old tool outputs.
 */
export const CompactionReason = z.enum([
  'over_budget',
  'overflow',
  'cold_cache',
  'join',
  'manual',
  'each_turn',
]);
export type CompactionReason = z.infer<typeof CompactionReason>;

/** The strategies in the order in which they are tried. */
export const CompactionStrategy = z.enum(['prune', 'adopt', 'summary', 'extraction', 'trim']);
export type CompactionStrategy = z.infer<typeof CompactionStrategy>;

const Tokens = z.int().nonnegative();

/** Size of the whole prompt before and after. `trigger` is the size at which compaction starts. */
const CutTokens = z.strictObject({ before: Tokens, after: Tokens, trigger: Tokens });

/** A text with its speaker: an author, or a tool by its name. */
export const Saying = z.strictObject({
  text: z.string(),
  by: z.strictObject({ kind: z.enum(['user', 'agent', 'system', 'tool']), id: z.string(), name: z.string() }),
  /** The speaker was not a trusted person at the time. */
  untrusted: z.literal(true).optional(),
  /** For a question: the agents it is addressed to. Empty: all. */
  asks: z.array(z.string()).optional(),
  /** For an error: what was attempted. The error is settled when the same attempt succeeds later. */
  attempt: z.string().optional(),
});
export type Saying = z.infer<typeof Saying>;

const Sayings = z.array(Saying);

/**
 * Facts extracted without a model and carried from one compaction to the next. Texts are in order of first appearance,
 * names in order of their last. Settled errors, closed tasks and the least used names are dropped.
 */
export const Facts = z.strictObject({
  artifacts: z.array(z.string()),
  filesRead: z.array(z.string()),
  filesModified: z.array(z.string()),
  identifiers: z.array(z.string()),
  /** Names met once so far. Another mention moves them to `identifiers`. */
  passing: z.array(z.string()).optional(),
  errors: Sayings,
  /** Demands of trusted people. */
  constraints: Sayings,
  /** Demands of others, and demands that agents report. Prompts name the speakers; these demands are not binding. */
  claims: Sayings.optional(),
  pending: Sayings,
});
export type Facts = z.infer<typeof Facts>;

/** A verbatim quote. `text` is complete unless `cut`. */
export const Quote = z.strictObject({
  seq: Seq,
  /** As in a message header: `Ana`, `@planner`, `Ana>@coder`. */
  speaker: z.string(),
  text: z.string(),
  cut: z.boolean().optional(),
  /** Kept in every later compaction: the first request, or a stated goal until it is replaced. */
  pinned: z.enum(['request', 'goal']).optional(),
  /** Id of the author of the pinned quote. A new goal of the same author replaces it. */
  by: z.string().optional(),
  /** The message in which its author replaced this request or goal. */
  replacedBy: Seq.optional(),
  /** As in `Saying`. */
  untrusted: z.literal(true).optional(),
});
export type Quote = z.infer<typeof Quote>;

/** An event that extraction kept. `why` names the parts of its score. */
export const Choice = z.strictObject({ seq: Seq, score: z.number(), why: z.array(z.string()) });
export type Choice = z.infer<typeof Choice>;

/** Stands for the events 1 to `upTo`. Compaction n+1 is made of compaction n and the events since, and replaces both. */
export const CompactionBody = z.strictObject({
  number: z.int().positive(),
  upTo: Seq,
  strategy: z.enum(['summary', 'extraction']),
  reason: CompactionReason,
  /** The agent that needed it. The agent's model wrote it unless a compactor is configured. */
  by: AgentId,
  /** Sections in prose. Empty if extraction chose quotes instead. */
  summary: z.string(),
  /** Words of people, and the other quotes that extraction chose; ascending by seq. */
  quotes: z.array(Quote),
  facts: Facts,
  /** The demands of trusted people as a prompt shows them. */
  demands: z.string(),
  /** The other facts as a prompt shows them, as far as they fit. */
  listing: z.string(),
  chosen: z.array(Choice),
  tokens: z.strictObject({ before: Tokens, after: Tokens }),
  usage: Usage.optional(),
});
export type CompactionBody = z.infer<typeof CompactionBody>;

/** The compaction that a view begins with from this baseline on. */
export const Adoption = z.strictObject({
  /** Null if only the running turn was shortened. */
  compaction: EventId.nullable(),
  upTo: z.int().nonnegative(),
  /** For a turn too long for its window: `text` replaces the steps of the running turn before `steps`. */
  turn: z.strictObject({ id: TurnId, steps: z.int().positive(), text: z.string() }).optional(),
  /** Shortened messages: the text that replaces each event's own. */
  trimmed: z.array(z.strictObject({ event: EventId, text: z.string() })).optional(),
  /** As `events` of a prune. */
  pruned: z.array(EventId).optional(),
  /** As `memories` of a prune. */
  forgotten: z.array(TurnId).optional(),
  reason: CompactionReason,
  tokens: CutTokens,
});
export type Adoption = z.infer<typeof Adoption>;

export const PruneBody = z.strictObject({
  /** Tool results. By id, because those of a running turn have no seq yet. */
  events: z.array(EventId),
  /** Turns whose retrieved memories are cleared. */
  memories: z.array(TurnId).default([]),
  reason: CompactionReason,
  tokens: CutTokens,
});
export type PruneBody = z.infer<typeof PruneBody>;

/** Progress of a compaction. `attempt` counts within the turn. */
export const CompactionProgressBody = z.strictObject({
  /** `pruned`: done, by placeholders alone. */
  phase: z.enum(['started', 'summarising', 'pruned', 'done', 'failed']),
  agent: AgentId,
  attempt: z.int().positive(),
  step: z.int().positive(),
  reason: CompactionReason,
  strategy: CompactionStrategy.optional(),
  range: z.strictObject({ from: Seq, upTo: Seq }).optional(),
  tokens: z.strictObject({ before: Tokens, after: Tokens.nullable() }),
  message: z.string().optional(),
});
export type CompactionProgressBody = z.infer<typeof CompactionProgressBody>;

/** A compaction in force in a prompt. */
export const Cut = z.object({
  /** The event that put it into force. */
  event: EventId,
  /** A summary in place of events, or placeholders in place of tool results. */
  kind: z.enum(['adopt', 'prune']),
  /** Why it was made. */
  reason: CompactionReason,
  /** Tokens of the prompt before and after. */
  tokens: CutTokens,
  /** For an adoption: the last event that its summary covers. */
  upTo: z.int().nonnegative().optional(),
  /** For an adoption: the event that holds its summary. */
  compaction: EventId.nullable().optional(),
  /** Number of tool results that are placeholders since then. */
  results: z.int().nonnegative().optional(),
});
export type Cut = z.infer<typeof Cut>;
