import type { AgentId, ConversationId, TurnId } from '../events/index.ts';

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

/** An agent that waits for a place under the caps of concurrent turns. */
export interface SlotWait {
  /** Its conversation. */
  conversation: ConversationId;
  /** The agent. */
  agent: AgentId;
  /** Name of its provider. */
  provider: string;
  /** When it was first refused, ms since the epoch. */
  since: number;
}

/** Why work does not go on. */
export type StuckReason =
  | { kind: 'model_silent'; since: number; lastWord: number | null }
  | { kind: 'tools_running'; since: number; names: string[] }
  | { kind: 'backing_off'; since: number; until: number; code: string }
  /** `heldBy`: running turns with this provider, the oldest first, at most 10; `holders` counts them all. */
  | { kind: 'slot_full'; since: number; provider: string; heldBy: Holder[]; holders: number };

/** A running turn that has a place. */
export type Holder = Pick<RunningTurn, 'conversation' | 'agent' | 'turn' | 'since'>;

/** What a person can do about it. */
export type StuckAction = 'abort' | 'raise_limit' | 'check_provider';

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
}

export const STUCK_AFTER: StuckThresholds = {
  modelMs: 180_000,
  toolsMs: 600_000,
  backoffMs: 60_000,
  slotMs: 30_000,
};

export interface StuckQuery {
  /** Age from which something counts, ms. Default: 3 min for a silent model, 10 min for tools, 1 min for failing calls, 30 s for a place. */
  afterMs?: number | undefined;
  /** Most lines. Default 100. */
  limit?: number | undefined;
}

/** Stuck work. */
export interface StuckReport {
  /** The longest first. */
  stuck: StuckLine[];
  /** Number of all of it, at most 1,000. */
  total: number;
}

export interface StuckFacts {
  running: readonly RunningTurn[];
  waiting: readonly SlotWait[];
  /** Running turns by the name of their provider, of all tenants; `shown` may be named. */
  holders: (provider: string) => { shown: readonly Holder[]; count: number };
}

const MOST_HOLDERS = 10;

/** All that is stuck, the longest first. */
export function stuckReasons(facts: StuckFacts, now: number, after: StuckThresholds): StuckLine[] {
  const found: StuckLine[] = [];
  for (const { conversation, agent, turn, doing } of facts.running) {
    const reason = reasonOf(doing, now, after);
    if (reason) found.push(lineOf({ conversation, agent, turn }, reason, now));
  }
  for (const { conversation, agent, provider, since } of facts.waiting) {
    if (now - since < after.slotMs) continue;
    const { shown, count } = facts.holders(provider);
    const heldBy = shown.toSorted((a, b) => a.since - b.since).slice(0, MOST_HOLDERS);
    const reason = { kind: 'slot_full', since, provider, heldBy, holders: count } as const;
    found.push(lineOf({ conversation, agent, turn: null }, reason, now));
  }
  return found.toSorted((a, b) => quietSince(a.reason) - quietSince(b.reason));
}

function reasonOf(doing: Doing, now: number, after: StuckThresholds): StuckReason | null {
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

function quietSince(reason: StuckReason): number {
  return reason.kind === 'model_silent' ? (reason.lastWord ?? reason.since) : reason.since;
}

function lineOf(
  of: Pick<StuckLine, 'conversation' | 'agent' | 'turn'>,
  reason: StuckReason,
  now: number,
): StuckLine {
  const { words, actions } = told(reason, age(now - quietSince(reason)));
  return { ...of, reason, words, actions };
}

function told(reason: StuckReason, time: string): Pick<StuckLine, 'words' | 'actions'> {
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
    case 'slot_full':
      return {
        words: `waits for a place with ${reason.provider} for ${time}${holderWords(reason)}`,
        actions: ['raise_limit'],
      };
  }
}

function holderWords({ heldBy: [first], holders }: { heldBy: readonly Holder[]; holders: number }): string {
  if (!first) return holders > 0 ? `, held by ${holders} turns of others` : '';
  const more = holders > 1 ? ` and ${holders - 1} more` : '';
  return `, held by @${first.agent} in ${first.conversation}${more}`;
}

/** `138 s`, `12 min`, `5 h`. */
function age(ms: number): string {
  const seconds = Math.round(ms / 1_000);
  if (seconds < 180) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 180 ? `${minutes} min` : `${Math.round(minutes / 60)} h`;
}
