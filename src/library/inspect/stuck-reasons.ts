import type { AgentId, ConversationId, TurnId } from '../../events/index.ts';
import { ageWords, type Holder, type WaitCause, type WaitingLine, waitWords } from './turn-queue.ts';

/** What a running turn does now. Times are ms since the epoch. */
export type Doing =
  /** It waits for its model. `lastWord`: when a piece of the answer came last; null: none has come. */
  | { kind: 'model'; since: number; lastWord: number | null }
  /** Its tools run. */
  | { kind: 'tools'; since: number; names: string[] }
  /** It waits before it repeats a failed model call. */
  | { kind: 'backoff'; since: number; until: number; code: string }
  /** Work of the runtime, such as building the prompt. */
  | { kind: 'runtime'; since: number };

/** A running turn. */
export interface RunningTurn {
  /** Its conversation. */
  conversation: ConversationId;
  /** Its agent. */
  agent: AgentId;
  /** Its id. */
  turn: TurnId;
  /** When this process first heard of it, ms since the epoch. */
  since: number;
  /** What it does now. */
  doing: Doing;
}

/** Why work does not go on. */
export type StuckReason =
  | { kind: 'model_silent'; since: number; lastWord: number | null }
  | { kind: 'tools_running'; since: number; names: string[] }
  | { kind: 'backing_off'; since: number; until: number; code: string }
  /** `heldBy`: running turns that hold the slots, the oldest first, at most 10; `holders` counts them all. */
  | { kind: 'slot_full'; since: number; provider: string | null; heldBy: Holder[]; holders: number }
  /** It waits for something else before it begins or goes on. */
  | { kind: 'queued'; since: number; for: Exclude<WaitCause, 'provider_slot' | 'tenant_slot'> }
  /** The agent is not defined: it was renamed or removed. */
  | { kind: 'undefined'; since: number }
  /** A person has not answered. `task`: the oldest one that the agent waits for; `count`: all in its conversation. */
  | UnansweredReason;

/** A question or an approval that no person has ended. */
export interface UnansweredReason {
  /** Which reason it is. */
  kind: 'unanswered';
  /** When it was asked, ms since the epoch. */
  since: number;
  /** Id of the question or of the request for approval. */
  task: string;
  /** What is asked for. */
  asks: 'question' | 'approval';
  /** The question, or the call, in a line. */
  text: string;
  /** Open questions and approvals of the conversation. */
  count: number;
}

/** What a person can do about it. */
export type StuckAction = 'abort' | 'raise_limit' | 'check_provider' | 'answer' | 'decide' | 'define';

/** Work that has not gone on for longer than its threshold. */
export interface StuckLine {
  /** The conversation. */
  conversation: ConversationId;
  /** The agent. */
  agent: AgentId;
  /** Its running turn. Null: none has begun. */
  turn: TurnId | null;
  /** Why. */
  reason: StuckReason;
  /** The reason in a sentence. */
  words: string;
  /** What can be done, the most useful first. */
  actions: StuckAction[];
}

/** Ages from which something counts as stuck, ms. */
export interface StuckThresholds {
  /** Without a word of the model. */
  modelMs: number;
  /** With the same tools running. */
  toolsMs: number;
  /** Since a model call failed. */
  backoffMs: number;
  /** Without a place. */
  slotMs: number;
  /** Without an answer of a person. */
  answerMs: number;
}

export const STUCK_AFTER: StuckThresholds = {
  modelMs: 180_000,
  toolsMs: 600_000,
  backoffMs: 60_000,
  slotMs: 30_000,
  answerMs: 24 * 3_600_000,
};

export interface StuckQuery {
  /** Age from which something counts, ms. Default: 3 minutes without a word of the model, 10 in the same tools, 1 of failed model calls, half a minute of waiting, a day without an answer. */
  afterMs?: number | undefined;
  /** Most lines. Default 100. */
  limit?: number | undefined;
  /** Of answers of people: only these conversations and their threads, ids or prefixes that end with `*`. Default: all. */
  among?: readonly string[] | undefined;
}

/** Stuck work. */
export interface StuckReport {
  /** The longest first; what waits for people is at the end. */
  stuck: StuckLine[];
  /** Number of all of it, at most 1,000. */
  total: number;
  /** Tool servers that this process could not use so far, and the agents that work without their tools. Absent: none. */
  awayServers?: { server: string; agents: AgentId[] }[];
}

export interface StuckFacts {
  running: readonly RunningTurn[];
  waiting: readonly WaitingLine[];
}

/** All that is stuck, the longest first. */
export function stuckReasons(facts: StuckFacts, now: number, after: StuckThresholds): StuckLine[] {
  const found: StuckLine[] = [];
  for (const { conversation, agent, turn, doing } of facts.running) {
    const reason = reasonOf(doing, now, after);
    if (reason) found.push(lineOf({ conversation, agent, turn }, reason, now));
  }
  for (const line of facts.waiting) {
    if (now - line.since < after.slotMs) continue;
    const { conversation, agent, turn } = line;
    const actions: StuckAction[] = line.for === 'process' || line.for === 'lease' ? [] : ['raise_limit'];
    found.push({ conversation, agent, turn, reason: waitReason(line), words: waitWords(line, now), actions });
  }
  return found.toSorted((a, b) => quietSince(a.reason) - quietSince(b.reason));
}

/** What waits for a person. */
export function unansweredLine(
  { conversation, agent }: Pick<StuckLine, 'conversation' | 'agent'>,
  reason: UnansweredReason,
  now: number,
): StuckLine {
  const [what, action] =
    reason.asks === 'question' ? (['an answer', 'answer'] as const) : (['a decision', 'decide'] as const);
  const words = `waits for ${what} of a person for ${ageWords(now - reason.since)}`;
  return { conversation, agent, turn: null, reason, words, actions: [action] };
}

/** Work for an agent that is not defined. */
export function undefinedLine(
  { conversation, agent }: Pick<StuckLine, 'conversation' | 'agent'>,
  since: number,
  now: number,
): StuckLine {
  const words = `has work but is not defined, noticed ${ageWords(now - since)} ago: it was renamed or removed`;
  return {
    conversation,
    agent,
    turn: null,
    reason: { kind: 'undefined', since },
    words,
    actions: ['define'],
  };
}

/** Why a running turn does not go on. */
type DoingReason = Exclude<StuckReason, { kind: 'slot_full' | 'queued' | 'unanswered' | 'undefined' }>;

function reasonOf(doing: Doing, now: number, after: StuckThresholds): DoingReason | null {
  switch (doing.kind) {
    case 'model': {
      const { since, lastWord } = doing;
      return now - (lastWord ?? since) < after.modelMs ? null : { kind: 'model_silent', since, lastWord };
    }
    case 'tools':
      return now - doing.since < after.toolsMs ? null : { ...doing, kind: 'tools_running' };
    case 'backoff':
      return now - doing.since < after.backoffMs ? null : { ...doing, kind: 'backing_off' };
    case 'runtime':
      return null;
  }
}

function waitReason({ for: cause, since, provider, heldBy, holders }: WaitingLine): StuckReason {
  if (cause !== 'provider_slot' && cause !== 'tenant_slot') return { kind: 'queued', since, for: cause };
  return { kind: 'slot_full', since, provider, heldBy, holders };
}

function quietSince(reason: StuckReason): number {
  return reason.kind === 'model_silent' ? (reason.lastWord ?? reason.since) : reason.since;
}

function lineOf(
  of: Pick<StuckLine, 'conversation' | 'agent' | 'turn'>,
  reason: DoingReason,
  now: number,
): StuckLine {
  const { words, actions } = told(reason, ageWords(now - quietSince(reason)));
  return { ...of, reason, words, actions };
}

function told(reason: DoingReason, time: string): Pick<StuckLine, 'words' | 'actions'> {
  switch (reason.kind) {
    case 'model_silent':
      return { words: `no word from the model for ${time}`, actions: ['abort', 'check_provider'] };
    case 'tools_running': {
      const names = reason.names.length > 0 ? reason.names.join(', ') : 'a tool';
      return { words: `has run ${names} for ${time}`, actions: ['abort'] };
    }
    case 'backing_off':
      return {
        words: `model calls have failed for ${time} (${reason.code})`,
        actions: ['check_provider', 'abort'],
      };
  }
}
