import {
  addUsage,
  type AgentId,
  type ConversationId,
  type Event,
  NO_USAGE,
  type TenantId,
  type Usage,
} from '../../events/index.ts';
import type { EngineDeps } from '../../actors/actor/engine-deps.ts';
import { readPages } from '../../actors/log/read-log.ts';
import { chargeWork } from '../../base/work.ts';
import { costOf } from '../../providers/prices.ts';
import { priceOfCall, usageOf } from './cache-cost.ts';
import { readReceipts } from './prompts.ts';

/** What some model calls cost. */
export interface CostSum {
  /** Number of model calls. A call that made several tool calls counts as a part for each tool: 0.5 for one of two. */
  calls: number;
  /** Tokens as the vendor reported them; `cacheRead` of the input came from its cache. */
  usage: Usage;
  /** US dollars of the calls with a known price. Null: the price of none is known. */
  usd: number | null;
  /** US dollars that the vendor's cache saved, its writes taken off. Below 0: the writes cost more. */
  saved: number;
  /** Number of model calls that `usd` lacks. */
  unknown: number;
}

/** Model calls whose cost is not known. */
export interface UnknownCost {
  /** Agent that made them. */
  agent: AgentId;
  /** Its model then. */
  model: string;
  /** `no_price`: the model is not in the price list, and the agent sets no `price`. `no_usage`: the vendor reported no tokens. */
  reason: 'no_price' | 'no_usage';
  /** Number of model calls. */
  calls: number;
}

/**
 * What the turns of a conversation and of the threads of its tasks cost, at today's prices. Calls that failed, and those that
 * wrote summaries, are not among them.
 */
export interface ConversationCost {
  /** Of all calls. */
  total: CostSum;
  /** By agent, the costliest first, as all lists here. */
  agents: (CostSum & { agent: AgentId })[];
  /** By the tools that the model called. Null: it called none, it answered. A call with several tool calls is split among them. */
  tools: (CostSum & { tool: string | null })[];
  /** By model. */
  models: (CostSum & { model: string })[];
  /** By day in UTC, as `2026-11-28`, on which the turn began. */
  days: (CostSum & { day: string })[];
  /** What `usd` lacks, with the reason. */
  unknown: UnknownCost[];
}

/** Rows that are read for a call: its receipt and its usage. */
const ROWS = 2;

/** A turn in the log. */
interface LoggedTurn {
  at: number;
  /** Names of the tools that each step called. */
  tools: Map<number, string[]>;
}

/** The cost of all turns of a conversation and of its threads, call by call from their receipts. */
export async function conversationCost(
  deps: EngineDeps,
  tenant: TenantId,
  conversation: ConversationId,
): Promise<ConversationCost> {
  const total = newSum();
  const [agents, tools, models, days] = [newSums(), newSums(), newSums(), newSums()];
  const unknown = new Map<string, UnknownCost>();
  const conversations = new Set([conversation]);
  // The loop comes to the threads that it adds.
  for (const each of conversations) {
    for (const [turn, { at, tools: called }] of await turnsOf(deps, tenant, each, conversations)) {
      for (const receipt of await readReceipts(deps, tenant, turn)) {
        await chargeWork(ROWS, 0);
        const usage = await usageOf(deps.store, tenant, receipt);
        const price = priceOfCall(deps, receipt);
        const call: PricedCall = {
          usage: usage ?? NO_USAGE,
          usd: usage && price ? costOf(usage, price) : null,
          uncached: usage && price ? costOf({ ...usage, cacheRead: 0, cacheWrite: 0 }, price) : null,
        };
        const names = called.get(receipt.step - 1) ?? [];
        addCall(total, call);
        addCall(agents.of(receipt.agent), call);
        addCall(models.of(receipt.model), call);
        addCall(days.of(new Date(at).toISOString().slice(0, 10)), call);
        for (const name of names.length > 0 ? names : [null])
          addCall(tools.of(name), call, 1 / Math.max(1, names.length));
        if (call.usd === null) noteUnknown(unknown, receipt, usage === null ? 'no_usage' : 'no_price');
      }
    }
  }
  return {
    total,
    agents: agents.sorted().map(([agent, sum]) => ({ agent: agent as AgentId, ...sum })),
    tools: tools.sorted().map(([tool, sum]) => ({ tool, ...sum })),
    models: models.sorted().map(([model, sum]) => ({ model: model ?? '', ...sum })),
    days: days.sorted().map(([day, sum]) => ({ day: day ?? '', ...sum })),
    unknown: [...unknown.values()],
  };
}

/** The turns of one log. Adds the threads of its tasks to `threads`. */
async function turnsOf(
  { store }: EngineDeps,
  tenant: TenantId,
  conversation: ConversationId,
  threads: Set<ConversationId>,
): Promise<Map<string, LoggedTurn>> {
  const turns = new Map<string, LoggedTurn>();
  for await (const page of readPages(store, { tenant, conversation }, { after: 0 }))
    for (const event of page) noteEvent(turns, threads, event);
  return turns;
}

function noteEvent(turns: Map<string, LoggedTurn>, threads: Set<ConversationId>, event: Event): void {
  if (event.kind === 'delegation.opened') threads.add(event.body.thread);
  if (event.turn === undefined) return;
  if (event.kind === 'turn.started') turns.set(event.turn, { at: event.at, tools: new Map() });
  if (event.kind === 'step')
    turns.get(event.turn)?.tools.set(
      event.body.index,
      event.body.calls.map(({ name }) => name),
    );
}

interface PricedCall {
  usage: Usage;
  usd: number | null;
  uncached: number | null;
}

function newSum(): CostSum {
  return { calls: 0, usage: NO_USAGE, usd: null, saved: 0, unknown: 0 };
}

function newSums() {
  const sums = new Map<string | null, CostSum>();
  return {
    of(key: string | null): CostSum {
      const sum = sums.get(key) ?? newSum();
      sums.set(key, sum);
      return sum;
    },
    sorted: () => [...sums].toSorted(([, a], [, b]) => (b.usd ?? 0) - (a.usd ?? 0)),
  };
}

function addCall(sum: CostSum, { usage, usd, uncached }: PricedCall, share = 1): void {
  sum.calls += share;
  sum.usage = addUsage(sum.usage, shareOf(usage, share));
  if (usd === null || uncached === null) {
    sum.unknown += share;
    return;
  }
  sum.usd = (sum.usd ?? 0) + usd * share;
  sum.saved += (uncached - usd) * share;
}

function shareOf({ input, output, cacheRead, cacheWrite, reasoning }: Usage, share: number): Usage {
  return {
    input: input * share,
    output: output * share,
    cacheRead: cacheRead * share,
    cacheWrite: cacheWrite * share,
    reasoning: reasoning * share,
  };
}

function noteUnknown(
  unknown: Map<string, UnknownCost>,
  { agent, model }: { agent: AgentId; model: string },
  reason: UnknownCost['reason'],
): void {
  const key = JSON.stringify([agent, model, reason]);
  const line = unknown.get(key) ?? { agent, model, reason, calls: 0 };
  line.calls++;
  unknown.set(key, line);
}
