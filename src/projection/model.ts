import type {
  AgentId,
  CompactionReason,
  CompactionStrategy,
  ConversationId,
  EventId,
  EventKind,
  Mode,
  TurnId,
} from '../events/index.ts';

/**
 * What the inspector knows of one conversation: a fold over its log, the same on the server, in the page, in the command
 * line and in tests. Plain JSON. Bounded: however long the log, lists keep the newest (see `bounds.ts`), sums keep all.
 */
export interface Projection {
  conversation: ConversationId;
  /** Of the last event folded, and when that and the first one were appended (ms); 0 where there is none. */
  seq: number;
  at: number;
  began: number;
  mode: Mode;
  phase: string | null;
  archived: boolean;
  /** By id, in the order of their first appearance. */
  agents: Record<string, AgentView>;
  /** The newest, oldest first. */
  turns: TurnView[];
  /** What somebody said or gave to an agent, newest last: the arrows between lanes. */
  arrows: Arrow[];
  /** The newest of what was said or given, for what a later turn saw of it. */
  talk: Talk[];
  /** All that are open, and the newest of those that have ended, by seq. */
  tasks: TaskView[];
  compactions: CompactionView[];
  /** Where this conversation was forked from, and what was forked from it. */
  origin: { conversation: ConversationId; seq: number } | null;
  forks: { conversation: ConversationId; seq: number }[];
  totals: Totals;
}

export interface Totals {
  events: number;
  turns: number;
  failed: number;
  running: number;
  compactions: number;
  tokens: TokenCounts;
}

/** As vendors report them. `input` has what was read from a cache and written to it, too. */
export interface TokenCounts {
  input: number;
  output: number;
  cacheRead: number;
  cacheWrite: number;
}

/** `waiting` is for a person, `held` for other agents. The order in which they need somebody: see `NEED`. */
export type AgentCondition =
  | 'failed'
  | 'waiting'
  | 'running'
  | 'held'
  | 'paused'
  | 'idle'
  | 'retired'
  | 'left';

export interface AgentView {
  id: AgentId;
  name: string;
  condition: AgentCondition;
  /** State path of its machine as far as the log tells, as `working.compacting` or `waiting.answer`. */
  state: string;
  /** Why it begins no turn; the one under way goes on. */
  parked: 'paused' | 'failed' | 'retired' | null;
  away: 'left' | 'blocked' | null;
  /** The event that brought it there. */
  since: { seq: number; at: number };
  turn: TurnId | null;
  lastTurn: TurnId | null;
  /** Events that address it and that no turn has settled: seqs, the oldest first, at most `MAX_PENDING`. */
  pending: number[];
  /** Up to here it has seen the log. */
  seen: number;
  turns: number;
  failed: number;
  tokens: TokenCounts;
  /** What went wrong last, until a turn is done. */
  problem: { code: string; message: string; seq: number } | null;
}

export interface TurnView {
  id: TurnId;
  agent: AgentId;
  number: number;
  status: 'running' | 'done' | 'failed' | 'aborted';
  /** Seqs of its start and its end. */
  from: number;
  to: number | null;
  startedAt: number;
  endedAt: number | null;
  upTo: number;
  inputs: number[];
  /** Who spoke in the oldest of its inputs, and the beginning of what they said; null where that is out of bounds. */
  trigger: { name: string; text: string } | null;
  /** Messages of others that it saw for the first time, without its inputs: the seqs of the first and the last. */
  missed: { count: number; first: number; last: number } | null;
  steps: number;
  /** At most `MAX_CALLS`; `callCount` counts all. */
  calls: CallView[];
  callCount: number;
  tokens: TokenCounts;
  /** Model calls that failed and were repeated. */
  retries: number;
  error: { code: string; message: string; seq: number } | null;
  handoff: { to: AgentId[]; seq: number } | null;
  /** Seq of the `command` event that asked for it again. */
  retried: number | null;
  /** The beginning of what it said. */
  said: string;
}

export interface CallView {
  call: string;
  name: string;
  /** Null while nobody knows. */
  outcome: 'done' | 'failed' | 'lost' | 'waiting' | null;
  seq: number;
}

export interface Arrow {
  seq: number;
  at: number;
  kind: EventKind;
  /** An agent, or the name of a person. */
  from: string;
  isAgent: boolean;
  to: AgentId[];
}

export interface Talk {
  seq: number;
  agent: AgentId | null;
  name: string;
  /** Its beginning; '' where it addresses nobody. */
  text: string;
  /** Whether all agents see it: what is between two is not for the others. */
  shared: boolean;
}

export interface TaskView {
  id: string;
  kind: 'delegation' | 'question' | 'approval';
  owner: AgentId;
  seq: number;
  at: number;
  /** What is asked, in a line; of an approval the tool and its arguments. */
  text: string;
  /** Of a question. */
  choices: string[];
  /** Of an approval: what a decision must name. */
  argsHash: string | null;
  /** Of a delegation. */
  assignee: AgentId | null;
  thread: ConversationId | null;
  outcome: string | null;
  endedAt: number | null;
}

/** One relief of one agent's view. */
export interface CompactionView {
  /** Of its first event. */
  seq: number;
  at: number;
  agent: AgentId;
  phase: 'started' | 'pruned' | 'summarising' | 'done' | 'failed';
  reason: CompactionReason;
  strategy: CompactionStrategy | null;
  range: { from: number; upTo: number } | null;
  tokens: { before: number; after: number | null };
  /** Per cent by which it became smaller; null until it is done. */
  reduced: number | null;
  /** The `compaction` event with the summary, where it made one. */
  summary: EventId | null;
  summarySeq: number | null;
  message: string | null;
  endedAt: number | null;
}

/** One event in a list: enough for a line of text. */
export interface Row {
  seq: number;
  at: number;
  /** Also kinds that this version does not know: they are shown raw. */
  kind: string;
  level: 'talk' | 'work' | 'noise' | 'problem';
  author: string;
  isAgent: boolean;
  /** The agent that it belongs to: its author, or the one that it is about. */
  agent: AgentId | null;
  to: AgentId[];
  turn: TurnId | null;
  /** What it says, in a line of at most `MAX_SUMMARY` characters. */
  summary: string;
}

/** How much of a conversation a projection keeps: with these it is some hundred kilobytes at most, however long the log. */
export const MAX_AGENTS = 2_000;
export const MAX_TURNS = 500;
export const MAX_ARROWS = 1_000;
export const MAX_TALK = 1_000;
/** Of those that have ended. */
export const MAX_TASKS = 100;
export const MAX_OPEN_TASKS = 500;
export const MAX_COMPACTIONS = 100;
export const MAX_FORKS = 100;
/** Of one agent, and inputs of one turn. */
export const MAX_PENDING = 100;
/** Of one turn. */
export const MAX_CALLS = 20;
/** Characters of a line. */
export const MAX_SUMMARY = 200;
/** Characters that are kept of what led to a turn. */
export const MAX_TRIGGER = 120;
/** Characters of the arguments of a call that a person has to agree to. */
export const MAX_ASKED = 4_000;
