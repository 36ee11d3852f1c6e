import * as z from 'zod';
import { AgentId, EventId, TurnId } from './ids.ts';
import { Usage } from './turn.ts';

/**
 * Everything lossy that is done to a view is an event, and a prompt is rendered from these events, never from a decision
 * made again.
 *
 *   compaction   shared: what an earlier part of the log comes to, neutral in person. Changes nobody's view by itself.
 *   baseline     with `adopts`: from here on one agent's view begins with a compaction (a new epoch).
 *   prune        one agent's own tool results that its view shows as placeholders from here on.
 *   compaction.started | pruned | summarising | done | failed   how relief went, for people; no view reads them.
 */

/** Why room had to be made. `overflow`: a provider refused the request as too long. */
export const CompactionReason = z.enum(['over_budget', 'overflow', 'cold_cache', 'join']);
export type CompactionReason = z.infer<typeof CompactionReason>;

/** In the order in which they are tried. */
export const CompactionStrategy = z.enum(['prune', 'adopt', 'summary', 'extraction', 'trim']);
export type CompactionStrategy = z.infer<typeof CompactionStrategy>;

const Seq = z.int().positive();
const Tokens = z.int().nonnegative();

/** Of the whole prompt, before and after; `trigger` is what it was to stay under. */
export const CutTokens = z.strictObject({ before: Tokens, after: Tokens, trigger: Tokens });
export type CutTokens = z.infer<typeof CutTokens>;

/** Words and whose they are: those of an author, or what a tool gave back, by the tool's name. */
export const Saying = z.strictObject({
  text: z.string(),
  by: z.strictObject({ kind: z.enum(['user', 'agent', 'system', 'tool']), id: z.string(), name: z.string() }),
  /** A person whom the settings did not trust when this was said. */
  untrusted: z.literal(true).optional(),
  /** Of a question: the agents whom it was put to; none: all. */
  asks: z.array(z.string()).optional(),
});
export type Saying = z.infer<typeof Saying>;

/** A text alone is of a log from before speakers were kept: nobody knows whose it is. */
const Sayings = z.array(z.union([z.string(), Saying]));

/** Found without a model and carried from one compaction to the next; each in the order of first appearance. */
export const Facts = z.strictObject({
  artifacts: z.array(z.string()),
  filesRead: z.array(z.string()),
  filesModified: z.array(z.string()),
  identifiers: z.array(z.string()),
  errors: Sayings,
  /** What trusted people demand. */
  constraints: Sayings,
  /** What others demand, and what agents say that was demanded: told as theirs, and binding nobody. */
  claims: Sayings.optional(),
  pending: Sayings,
});
export type Facts = z.infer<typeof Facts>;

/** Words kept as they were said. `text` is whole unless `cut`. */
export const Quote = z.strictObject({
  seq: Seq,
  /** As in a header: `Ana`, `@planner`, `Ana -> @coder`. */
  speaker: z.string(),
  text: z.string(),
  cut: z.boolean().optional(),
  /** Of a person whom the settings did not trust when this was said. */
  untrusted: z.literal(true).optional(),
});
export type Quote = z.infer<typeof Quote>;

/** An event that extraction kept, and why: the parts of its score by name. */
export const Choice = z.strictObject({ seq: Seq, score: z.number(), why: z.array(z.string()) });
export type Choice = z.infer<typeof Choice>;

/** Stands for the events 1..upTo. Number n+1 is made from number n and the events between, and stands for both. */
export const CompactionBody = z.strictObject({
  number: z.int().positive(),
  upTo: Seq,
  strategy: z.enum(['summary', 'extraction']),
  reason: CompactionReason,
  /** The agent that needed it; its model wrote it, unless another was named to. */
  by: AgentId,
  /** Sections in prose; empty where extraction chose quotes instead. */
  summary: z.string(),
  /** What people said, and what extraction chose of the rest; ascending by seq. */
  quotes: z.array(Quote),
  facts: Facts,
  /** The facts as they are shown: what there was room for. */
  listing: z.string(),
  chosen: z.array(Choice),
  tokens: z.strictObject({ before: Tokens, after: Tokens }),
  usage: Usage.optional(),
});
export type CompactionBody = z.infer<typeof CompactionBody>;

/** The compaction that a view begins with from this baseline on. */
export const Adoption = z.strictObject({
  /** Null where only the running turn was shortened. */
  compaction: EventId.nullable(),
  upTo: z.int().nonnegative(),
  /** Steps of the running turn before `steps` are covered by `text`: a turn too long for its window. */
  turn: z.strictObject({ id: TurnId, steps: z.int().positive(), text: z.string() }).optional(),
  /** Messages that are kept shortened: their text from here on, by event. */
  trimmed: z.array(z.strictObject({ event: EventId, text: z.string() })).optional(),
  /** As `events` and `memories` of a prune. */
  pruned: z.array(EventId).optional(),
  forgotten: z.array(TurnId).optional(),
  reason: CompactionReason,
  tokens: CutTokens,
});
export type Adoption = z.infer<typeof Adoption>;

/** Tool results by event id (those of a running turn have no seq yet), and turns whose retrieved memories are cleared. */
export const PruneBody = z.strictObject({
  events: z.array(EventId),
  memories: z.array(TurnId).default([]),
  reason: CompactionReason,
  tokens: CutTokens,
});
export type PruneBody = z.infer<typeof PruneBody>;

/** How relief goes. `attempt` counts within the turn. */
export const CompactionNote = z.strictObject({
  agent: AgentId,
  attempt: z.int().positive(),
  step: z.int().positive(),
  reason: CompactionReason,
  strategy: CompactionStrategy.optional(),
  range: z.strictObject({ from: Seq, upTo: Seq }).optional(),
  tokens: z.strictObject({ before: Tokens, after: Tokens.nullable() }),
  message: z.string().optional(),
});
export type CompactionNote = z.infer<typeof CompactionNote>;

/** A rewrite that is in force in a prompt: what was cut and why. */
export const Cut = z.object({
  event: EventId,
  kind: z.enum(['adopt', 'prune']),
  reason: CompactionReason,
  tokens: CutTokens,
  /** Of an adoption: what its summary covers, and which compaction that is. */
  upTo: z.int().nonnegative().optional(),
  compaction: EventId.nullable().optional(),
  /** How many tool results are shown as placeholders since. */
  results: z.int().nonnegative().optional(),
});
export type Cut = z.infer<typeof Cut>;
