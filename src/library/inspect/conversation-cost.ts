import {
  addUsage,
  isAbout,
  type AgentId,
  type ConversationId,
  type Event,
  type EventOf,
  NO_USAGE,
  type OtherCalls,
  type PromptReceipt,
  type TenantId,
  type Usage,
} from '../../events/index.ts';
import type { EngineDeps } from '../../actors/actor/engine-deps.ts';
import { readPages } from '../../actors/log/read-log.ts';
import { chargeWork } from '../../base/work.ts';
import { costOf, type ModelPrice } from '../../providers/prices.ts';
import { priceOfCall, usageOf } from './cache-cost.ts';
import { readReceipts } from './prompts.ts';

/** Cost of a number of model calls. */
export interface CostSum {
  /** Number of model calls. A call that made several tool calls counts as a part for each tool: 0.5 for one of two. */
  calls: number;
  /** Tokens as the vendor reported them; `cacheRead` of the input came from its cache. */
  usage: Usage;
  /** US dollars of the calls with a known price. Null: the price of none is known. */
  usd: number | null;
  /** US dollars that the vendor's cache saved, minus the cost of its writes. Below 0: the writes cost more. */
  saved: number;
  /** Number of model calls whose cost is not in `usd`. */
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

/** Outcome of model calls: the answer of a step, a summary for a compaction, or nothing that was used. */
type CallOutcome = 'answered' | OtherCalls['outcome'];

/**
 * Cost of the turns of a conversation and of the threads of its tasks at today's prices: answers, summaries and failed
 * calls. Not known: calls of a process that died before their turn ended.
 */
export interface ConversationCost {
  /** Sum of all calls. */
  total: CostSum;
  /**
   * By outcome. `summarised`: a summary, whether or not it was used. `failed`: a call that failed or was stopped, or
   * whose answer was discarded; usage that vendors do not report is estimated from what was sent and received, and is 0
   * for refusals that cost nothing.
   */
  outcomes: (CostSum & { outcome: CallOutcome })[];
  /** By agent, the most expensive first, as in all lists here. */
  agents: (CostSum & { agent: AgentId })[];
  /**
   * Answers by the tools that the model called. Null: it called none and replied. The cost of an answer with several
   * tool calls is split among them.
   */
  tools: (CostSum & { tool: string | null })[];
  /** By model. */
  models: (CostSum & { model: string })[];
  /** By day in UTC, as `2026-11-28`, on which the turn began. */
  days: (CostSum & { day: string })[];
  /** By each combination of agent, model, day and outcome: the finest parts, for sums over conversations. */
  parts: CostPart[];
  /** What is missing in `usd`, with the reason. */
  unknown: UnknownCost[];
}

/** The calls of one agent with one model on one day that had the same outcome. */
export interface CostPart extends CostSum {
  /** Id of the agent whose turns the calls belong to. */
  agent: AgentId;
  /** As the price list or the agent's definition names it. */
  model: string;
  /** In UTC, as `2026-11-28`. */
  day: string;
  /** What came of the calls, as in `ConversationCost.outcomes`. */
  outcome: CallOutcome;
}

/** Number of rows that are read for a call: its receipt and its usage. */
const ROWS = 2;

interface LoggedTurn {
  at: number;
  agent: AgentId;
  /** Null: it has not ended. */
  end: EventOf<'turn.done' | 'turn.failed' | 'turn.aborted'> | null;
  /** Names of the tools that each step called. */
  tools: Map<number, string[]>;
}

/** The cost of all turns of a conversation and of its threads, call by call from their receipts. */
export async function conversationCost(
  deps: EngineDeps,
  tenant: TenantId,
  conversation: ConversationId,
): Promise<ConversationCost> {
  const sums = newReport();
  const conversations = new Set([conversation]);
  // The loop also visits the threads that it adds.
  for (const each of conversations) {
    for (const [turn, logged] of await turnsOf(deps, tenant, each, conversations)) {
      const day = new Date(logged.at).toISOString().slice(0, 10);
      const receipts = await readReceipts(deps, tenant, turn);
      for (const receipt of receipts) {
        await chargeWork(ROWS, 0);
        const usage = await usageOf(deps.store, tenant, receipt);
        if (usage === null && isUnanswered(receipt, logged)) continue;
        const { agent, model, step } = receipt;
        const call = { ...priced(usage, priceOfCall(deps, receipt)), calls: 1 };
        sums.add({ agent, model, day, outcome: 'answered', tools: logged.tools.get(step - 1) ?? [] }, call);
        if (call.usd === null)
          sums.note({ agent, model, calls: 1 }, usage === null ? 'no_usage' : 'no_price');
      }
      // The turns of a fork or an import were paid for elsewhere: here they have no receipts.
      const others = receipts.length === 0 ? [] : (logged.end?.body.others ?? []);
      for (const { outcome, model, calls, usage } of others) {
        const { agent } = logged;
        const call = { ...priced(usage, priceOfCall(deps, { agent, model })), calls };
        sums.add({ agent, model, day, outcome, tools: null }, call);
        if (call.usd === null) sums.note({ agent, model, calls }, 'no_price');
      }
    }
  }
  return sums.report();
}

/** Whether the last call of the turn failed. Its step has a receipt nevertheless; the end of the turn records the failure. */
function isUnanswered({ step }: PromptReceipt, { end, tools }: LoggedTurn): boolean {
  if (end === null || end.kind === 'turn.done' || tools.has(step - 1)) return false;
  return end.body.others?.some(({ outcome }) => outcome === 'failed') ?? false;
}

function priced(usage: Usage | null, price: ModelPrice | null): Omit<PricedCall, 'calls'> {
  const isKnown = usage !== null && price !== null;
  return {
    usage: usage ?? NO_USAGE,
    usd: isKnown ? costOf(usage, price) : null,
    uncached: isKnown ? costOf({ ...usage, cacheRead: 0, cacheWrite: 0 }, price) : null,
  };
}

/** A model call without its tokens. `tools`: null for a call that is not an answer. */
interface AboutCall {
  agent: AgentId;
  model: string;
  day: string;
  outcome: CallOutcome;
  tools: readonly string[] | null;
}

function newReport() {
  const total = newSum();
  const [outcomes, agents, tools, models, days] = [newSums(), newSums(), newSums(), newSums(), newSums()];
  const parts = new Map<string, CostPart>();
  const unknown = new Map<string, UnknownCost>();
  return {
    add(about: AboutCall, call: PricedCall): void {
      addCall(total, call);
      addCall(partIn(parts, about), call);
      addCall(outcomes.of(about.outcome), call);
      addCall(agents.of(about.agent), call);
      addCall(models.of(about.model), call);
      addCall(days.of(about.day), call);
      if (about.tools === null) return;
      const names = about.tools.length > 0 ? about.tools : [null];
      for (const name of names) addCall(tools.of(name), call, 1 / names.length);
    },
    note({ agent, model, calls }: Omit<UnknownCost, 'reason'>, reason: UnknownCost['reason']): void {
      const key = JSON.stringify([agent, model, reason]);
      const line = unknown.get(key) ?? { agent, model, reason, calls: 0 };
      line.calls += calls;
      unknown.set(key, line);
    },
    report: (): ConversationCost => ({
      total,
      outcomes: outcomes.sorted().map(([outcome, sum]) => ({ outcome: outcome as CallOutcome, ...sum })),
      agents: agents.sorted().map(([agent, sum]) => ({ agent: agent as AgentId, ...sum })),
      tools: tools.sorted().map(([tool, sum]) => ({ tool, ...sum })),
      models: models.sorted().map(([model, sum]) => ({ model: model ?? '', ...sum })),
      days: days.sorted().map(([day, sum]) => ({ day: day ?? '', ...sum })),
      parts: [...parts.values()],
      unknown: [...unknown.values()],
    }),
  };
}

function partIn(parts: Map<string, CostPart>, { agent, model, day, outcome }: AboutCall): CostPart {
  const key = JSON.stringify([agent, model, day, outcome]);
  const part = parts.get(key) ?? { agent, model, day, outcome, ...newSum() };
  parts.set(key, part);
  return part;
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
  const { at, turn, author } = event;
  if (event.kind === 'turn.started')
    turns.set(turn, { at, agent: author.id as AgentId, end: null, tools: new Map() });
  const known = turns.get(turn);
  if (known && isAbout(event, 'turnEnd')) known.end = event;
  if (event.kind === 'step')
    known?.tools.set(
      event.body.index,
      event.body.calls.map(({ name }) => name),
    );
}

interface PricedCall {
  calls: number;
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

function addCall(sum: CostSum, { calls, usage, usd, uncached }: PricedCall, share = 1): void {
  sum.calls += calls * share;
  sum.usage = addUsage(sum.usage, shareOf(usage, share));
  if (usd === null || uncached === null) {
    sum.unknown += calls * share;
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
