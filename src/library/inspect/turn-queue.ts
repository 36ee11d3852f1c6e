import type { AgentId, ConversationId, TurnId } from '../../events/index.ts';
import type { QueueDepth } from '../../queue/router.ts';

/** What an agent waits for before its turn begins, or its model call. */
export type WaitCause =
  /** All slots of its provider are held, or those that its tenant may hold. */
  | 'provider_slot'
  /** All slots of its tenant are held. */
  | 'tenant_slot'
  /** The rate of calls to its provider is used up. */
  | 'call_rate'
  /** All processes run as many turns as they may at once. */
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
  /** What it does now. Null: it has told nothing since this process began to listen. */
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
  /** Number of all holders, of other tenants too. */
  holders: number;
  /** All this in a sentence. */
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
  /** How long wakes waited, those included that wait now. Null: there was none. */
  wait?: { p50Ms: number; p95Ms: number; count: number } | null;
  /** Turns of this tenant, over all processes. */
  turns: TurnQueue;
  /** Providers that have a limit, or turns. */
  providers: ProviderLoad[];
}

/** A caller to whom all of it is hidden. */
export const NO_TURNS: TurnQueue = {
  running: [],
  runningTotal: 0,
  waiting: [],
  waitingTotal: 0,
  oldestMs: null,
};

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

/** Numbers of one provider, made of the turns of all tenants. */
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
