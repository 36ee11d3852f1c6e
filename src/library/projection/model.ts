import type { Level } from '../../events/kinds.ts';
import type {
  AgentId,
  Author,
  CompactionReason,
  CompactionStrategy,
  ConversationId,
  EventId,
  EventKind,
  Mode,
  RunTime,
  TurnId,
  TurnTimes,
} from '../../events/index.ts';

/**
 * The inspector's state of one conversation: a fold over its log, the same on the server, in the page and in the command
 * line. Plain JSON. Its size is bounded for any length of log: lists keep the newest items (see `MAX_*`), totals count all.
 */
export interface Projection {
  conversation: ConversationId;
  /** Seq of the last folded event; 0 without any. */
  seq: number;
  /** Time of the last folded event, ms; 0 without any. */
  at: number;
  /** Time of the first event, ms; 0 without any. */
  began: number;
  mode: Mode;
  phase: string | null;
  archived: boolean;
  /** By id, in the order of first appearance. */
  agents: Record<string, AgentView>;
  /** The newest turns, oldest first. */
  turns: TurnView[];
  /** The newest events addressed to agents, oldest first: the arrows between lanes. */
  arrows: Arrow[];
  /** Who has written to whom since the beginning, and how often, in the order of first messages. At most `MAX_LINKS`. */
  links: Link[];
  /** The first and the newest message; null without any. */
  opening: Saying | null;
  closing: Saying | null;
  /** The people who have written messages, in the order of their first ones. At most `MAX_PEOPLE`. */
  people: { id: string; name: string }[];
  /** The newest messages, for the inputs of later turns and what they had missed. */
  talk: Talk[];
  /** All open tasks and the newest ended ones, by seq. */
  tasks: TaskView[];
  compactions: CompactionView[];
  /** The conversation that this one was forked from. */
  origin: { conversation: ConversationId; seq: number } | null;
  /** The conversations that were forked from this one. */
  forks: { conversation: ConversationId; seq: number }[];
  totals: Totals;
}

/** Speaker and beginning of a message. */
export interface Saying {
  name: string;
  text: string;
}

export interface Totals {
  events: number;
  turns: number;
  failed: number;
  running: number;
  compactions: number;
  /** Messages, tasks and handoffs of pairs that `links` had no room for. */
  unlinked: number;
  tokens: TokenCounts;
}

/** As vendors report them. `input` includes tokens read from a cache and written to it. */
export interface TokenCounts {
  input: number;
  output: number;
  cacheRead: number;
  cacheWrite: number;
}

/** `waiting`: for a person. `held`: for other agents. `NEED` has their order of urgency. */
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
  /** State path of its machine as far as the log shows it, such as `working.compacting` or `waiting.answer`. */
  state: string;
  /** Why the agent begins no turn. A running turn continues. */
  parked: 'paused' | 'failed' | 'retired' | null;
  away: 'left' | 'blocked' | null;
  /** The event that caused the condition. */
  since: { seq: number; at: number };
  turn: TurnId | null;
  lastTurn: TurnId | null;
  /** Addressed events that no turn has settled: at most `MAX_PENDING` seqs, oldest first. */
  pending: number[];
  /** The seq up to which the agent has seen the log. */
  seen: number;
  turns: number;
  failed: number;
  tokens: TokenCounts;
  /** The last error, until a turn is done. */
  problem: { code: string; message: string; seq: number } | null;
}

export interface TurnView {
  id: TurnId;
  agent: AgentId;
  number: number;
  status: 'running' | 'done' | 'failed' | 'aborted';
  /** Seq of the start. */
  from: number;
  /** Seq of the end. */
  to: number | null;
  /** Time of the oldest input: from then on the turn waited to begin. Null if it is no longer kept. */
  queuedAt: number | null;
  startedAt: number;
  endedAt: number | null;
  upTo: number;
  inputs: number[];
  /** Speaker and beginning of the oldest input; null if it is no longer kept. */
  trigger: { name: string; text: string } | null;
  /** Messages of others that the agent had not seen before, without the inputs. `first` and `last` are seqs. */
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
  /** Seq of the `command` event that retried the turn. */
  retried: number | null;
  /** Beginning of the reply. */
  said: string;
  /** The parts of its time; null until the turn ends, and if the log has none. */
  times: TurnTimes | null;
}

interface CallView {
  call: string;
  name: string;
  /** Null until it is known. */
  outcome: 'done' | 'failed' | 'lost' | 'waiting' | null;
  seq: number;
  /** When the tool ran; null until it is known, and if it did not run. */
  ran: RunTime | null;
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

/** Messages from one author to one agent. Answers of people and results of tasks count as messages, commands do not. */
export interface Link {
  /** An agent, or the name of a person or of the runtime. */
  from: string;
  by: Author['kind'];
  to: AgentId;
  messages: number;
  tasks: number;
  handoffs: number;
  /** Seq of the newest one. */
  seq: number;
}

export interface Talk {
  seq: number;
  /** Id of the author if it is an agent, also one defined elsewhere. */
  agent: string | null;
  name: string;
  /** Beginning of the text; '' without addressees. */
  text: string;
  /** Whether all agents see it. */
  shared: boolean;
}

export interface TaskView {
  id: string;
  kind: 'delegation' | 'question' | 'approval';
  owner: AgentId;
  seq: number;
  at: number;
  /** The task in a line. For an approval, the tool and its arguments. */
  text: string;
  /** For a question. */
  choices: string[];
  /** For an approval: the hash that a decision must name. */
  argsHash: string | null;
  /** When it ends by itself, ms. Null: never. */
  deadline: number | null;
  /** For a delegation. */
  assignee: AgentId | null;
  thread: ConversationId | null;
  outcome: string | null;
  endedAt: number | null;
}

/** One compaction of one agent's view. */
export interface CompactionView {
  /** Seq of the first event. */
  seq: number;
  at: number;
  agent: AgentId;
  phase: 'started' | 'pruned' | 'summarising' | 'done' | 'failed';
  reason: CompactionReason;
  strategy: CompactionStrategy | null;
  range: { from: number; upTo: number } | null;
  tokens: { before: number; after: number | null };
  /** Reduction of the size in per cent; null until done. */
  reduced: number | null;
  /** The `compaction` event with the summary, if any. */
  summary: EventId | null;
  summarySeq: number | null;
  message: string | null;
  endedAt: number | null;
}

/** One event in a list: enough for a line of text. */
export interface Row {
  seq: number;
  at: number;
  /** May be a kind that this version does not know. */
  kind: string;
  level: Level;
  author: string;
  isAgent: boolean;
  /** The agent that wrote the event, also one defined elsewhere, or that it is about. */
  agent: string | null;
  to: AgentId[];
  turn: TurnId | null;
  /** One line of at most `MAX_SUMMARY` characters. */
  summary: string;
  /** Its words were erased, all or some. */
  erased?: true;
}

/** Bounds of a projection. With these it has some two hundred kilobytes at most. */
export const MAX_AGENTS = 2_000;
export const MAX_TURNS = 200;
export const MAX_ARROWS = 400;
export const MAX_LINKS = 1_000;
export const MAX_TALK = 400;
export const MAX_PEOPLE = 20;
/** Ended tasks. */
export const MAX_TASKS = 100;
export const MAX_OPEN_TASKS = 500;
export const MAX_COMPACTIONS = 100;
export const MAX_FORKS = 100;
/** Pending events of one agent, and inputs of one turn. */
export const MAX_PENDING = 100;
/** Calls of one turn. */
export const MAX_CALLS = 20;
/** Parts of the time of one turn. */
export const MAX_PARTS = 40;
/** Characters of a line. */
export const MAX_SUMMARY = 200;
/** Characters of the trigger of a turn. */
export const MAX_TRIGGER = 120;
/** Characters of a question, or of the arguments of a call that needs approval. */
export const MAX_ASKED = 4_000;
