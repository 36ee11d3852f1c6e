import type { AgentId, ConversationId, TurnId } from '../../events/index.ts';
import type { QueueDepth } from '../../queue/router.ts';

/** What a running turn does now. Times are ms since the epoch. */
export type Doing =
  /** It waits for its model. `lastWord`: time of the last piece of the answer; null: none has come. */
  | { kind: 'model'; since: number; lastWord: number | null }
  /** Its tools run. */
  | { kind: 'tools'; since: number; names: string[] }
  /** It waits before it repeats a failed model call. */
  | { kind: 'backoff'; since: number; until: number; code: string }
  /** Work of the runtime, such as building the prompt. */
  | { kind: 'runtime'; since: number };

/** A running turn. */
interface RunningTurn {
  /** Its conversation. */
  conversation: ConversationId;
  /** Its agent. */
  agent: AgentId;
  /** Its id. */
  turn: TurnId;
  /** When this process first received a note of it, ms since the epoch. */
  since: number;
  /** What it does now. */
  doing: Doing;
}

/** Why work does not continue. */
type StuckReason =
  | { kind: 'model_silent'; since: number; lastWord: number | null }
  | { kind: 'tools_running'; since: number; names: string[] }
  | { kind: 'backing_off'; since: number; until: number; code: string }
  /** `heldBy`: running turns that hold the slots, the oldest first, at most 10; `holders` counts them all. */
  | { kind: 'slot_full'; since: number; provider: string | null; heldBy: Holder[]; holders: number }
  /** It waits for something else before it begins or continues. */
  | { kind: 'queued'; since: number; for: Exclude<WaitCause, 'provider_slot' | 'tenant_slot'> }
  /** The agent is not defined: it was renamed or removed. `work`: what is open, in words. */
  | { kind: 'undefined'; since: number; work: string }
  /** A person has not answered. `task`: the oldest one that the agent waits for; `count`: all in its conversation. */
  | UnansweredReason;

/** A question or an approval that no person has ended. */
interface UnansweredReason {
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

/** What a person can do about a stuck line. */
type StuckAction = 'abort' | 'raise_limit' | 'check_provider' | 'answer' | 'decide' | 'define';

/** Work that has not continued for longer than its threshold. */
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
interface StuckThresholds {
  /** The model has written nothing for this long. */
  modelMs: number;
  /** The same tools have been running for this long. */
  toolsMs: number;
  /** Model calls have been failing for this long. */
  backoffMs: number;
  /** The agent has waited for a slot for this long. */
  slotMs: number;
  /** No person has answered for this long. */
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
  /**
   * Age from which something counts as stuck, ms. Default: 3 minutes without output of the model, 10 minutes in the
   * same tools, 1 minute of failed model calls, 30 seconds of waiting for a slot, 1 day without an answer.
   */
  afterMs?: number | undefined;
  /** Most lines. Default 100. */
  limit?: number | undefined;
  /** Restricts answers of people to these conversations and their threads: ids, or prefixes that end with `*`. Default: all. */
  among?: readonly string[] | undefined;
}

/** Stuck work. */
export interface StuckReport {
  /** The longest first; what waits for people comes last. */
  stuck: StuckLine[];
  /** Number of all stuck lines, at most 1,000. */
  total: number;
  /** Tool servers that this process cannot use yet, and the agents that work without their tools. Absent: none. */
  awayServers?: { server: string; agents: AgentId[] }[];
}

interface StuckFacts {
  running: readonly RunningTurn[];
  waiting: readonly WaitingLine[];
}

/** Everything that is stuck, the longest first. */
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

export function undefinedLine(
  { conversation, agent }: Pick<StuckLine, 'conversation' | 'agent'>,
  { since, work }: { since: number; work: string },
  now: number,
): StuckLine {
  const words = `has work but is not defined (${work}), noticed ${ageWords(now - since)} ago: it was renamed or removed`;
  return {
    conversation,
    agent,
    turn: null,
    reason: { kind: 'undefined', since, work },
    words,
    actions: ['define'],
  };
}

/** Why a running turn does not continue. */
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

/** What an agent waits for before its turn begins, or its model call. */
export type WaitCause =
  /** All slots of its provider are held, or those that its tenant may hold. */
  | 'provider_slot'
  /** All slots of its tenant are held. */
  | 'tenant_slot'
  /** The rate of calls to its provider is used up. */
  | 'call_rate'
  /** This process already runs as many turns as it may at once. */
  | 'process'
  /** Another process has its lease. */
  | 'lease';

/** A running turn that others wait for. */
export interface Holder {
  /** Its conversation. */
  conversation: ConversationId;
  /** Its agent. */
  agent: AgentId;
  /** Its id. */
  turn: TurnId;
  /** When it began, ms since the epoch. */
  since: number;
}

/** A running turn. */
export interface RunningLine extends Holder {
  /** Name of its provider. Null: this process has no such agent. */
  provider: string | null;
  /** What it does now. Null: no note has come since this process began to listen. */
  doing: 'model' | 'tools' | 'backoff' | 'runtime' | null;
}

/** An agent that waits. */
export interface WaitingLine {
  /** Its conversation. */
  conversation: ConversationId;
  /** The agent. */
  agent: AgentId;
  /** Its running turn. Null: none has begun. */
  turn: TurnId | null;
  /** Name of its provider. Null: this process has no such agent. */
  provider: string | null;
  /** What it waits for. */
  for: WaitCause;
  /** Since when, ms since the epoch. */
  since: number;
  /** Who holds the slots, the oldest first, at most 10. */
  heldBy: Holder[];
  /** Number of all holders, including those of other tenants. */
  holders: number;
  /** The wait in a sentence. */
  words: string;
}

/** The turns of one provider, of all tenants. */
export interface ProviderLoad {
  /** Name of the provider. */
  provider: string;
  /** Most turns at once. Null: no limit. */
  turns: number | null;
  /** Most calls in a minute. Null: no limit. */
  callsPerMinute: number | null;
  /** Running turns. */
  running: number;
  /** Waiting agents. */
  waiting: number;
  /** Since when the oldest of them has waited, ms since the epoch. Null: none waits. */
  oldest: number | null;
}

/** Who runs and who waits. */
export interface TurnQueue {
  /** The oldest first, at most 100. */
  running: RunningLine[];
  /** Number of all that run. */
  runningTotal: number;
  /** The longest first, at most 100. */
  waiting: WaitingLine[];
  /** Number of all that wait. */
  waitingTotal: number;
  /** Age of the longest wait, ms. Null: nobody waits. */
  oldestMs: number | null;
}

/** Waiting and running wakes and turns. */
export interface QueueReport extends QueueDepth {
  /** Failed wakes. */
  failed?: number;
  /** How long wakes waited, including those that wait now. Null: there were none. */
  wait?: { p50Ms: number; p95Ms: number; count: number } | null;
  /** Turns of this tenant, over all processes. */
  turns: TurnQueue;
  /** Providers that have a limit, or turns. */
  providers: ProviderLoad[];
}

export const MOST_HOLDERS = 10;

type Waits = Pick<WaitingLine, 'for' | 'since' | 'provider' | 'heldBy' | 'holders'>;

/** `waits for a slot of openai for 138 s, held by @bo in c1 and 2 more`. */
export function waitWords(line: Waits, now: number): string {
  return `${causeWords(line)} for ${ageWords(now - line.since)}${holderWords(line)}`;
}

function causeWords({ for: cause, provider }: Waits): string {
  switch (cause) {
    case 'provider_slot':
      return `waits for a slot of ${provider ?? 'its provider'}`;
    case 'tenant_slot':
      return 'waits for a slot of its tenant';
    case 'call_rate':
      return `waits for the call rate of ${provider ?? 'its provider'}`;
    case 'process':
      return 'waits for a free process';
    case 'lease':
      return 'waits for a process that does not let go';
  }
}

function holderWords({ heldBy: [first], holders }: Waits): string {
  if (!first) return holders > 0 ? `, held by ${holders} turns of others` : '';
  const more = holders > 1 ? ` and ${holders - 1} more` : '';
  return `, held by @${first.agent} in ${first.conversation}${more}`;
}

/** `138 s`, `12 min`, `5 h`, `3 days`. */
export function ageWords(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1_000));
  if (seconds < 180) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 180) return `${minutes} min`;
  const hours = Math.round(minutes / 60);
  return hours < 48 ? `${hours} h` : `${Math.round(hours / 24)} days`;
}

/** Sums for each provider, over the turns of all tenants. */
export function providerLoads(
  caps: Record<string, { turns?: number | undefined; callsPerMinute?: number | undefined }>,
  running: readonly (string | null)[],
  waiting: readonly { provider: string | null; since: number }[],
): ProviderLoad[] {
  const loads = new Map<string, ProviderLoad>();
  const of = (provider: string) => {
    const known = loads.get(provider);
    if (known) return known;
    const { turns = null, callsPerMinute = null } = caps[provider] ?? {};
    const load = { provider, turns, callsPerMinute, running: 0, waiting: 0, oldest: null };
    loads.set(provider, load);
    return load;
  };
  for (const provider of Object.keys(caps)) of(provider);
  for (const provider of running) if (provider !== null) of(provider).running += 1;
  for (const { provider, since } of waiting) {
    if (provider === null) continue;
    const load = of(provider);
    load.waiting += 1;
    load.oldest = Math.min(load.oldest ?? since, since);
  }
  return [...loads.values()].toSorted((a, b) => b.waiting - a.waiting || b.running - a.running);
}
