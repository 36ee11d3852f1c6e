import {
  cacheRequestOf,
  countMessages,
  cacheRules,
  type CacheVendor,
  type CacheOutcome,
  type CacheReport,
  type CacheRequest,
  simulateCache,
} from '../../context/cache/cache-cost.ts';
import { type CacheBreak, locateBreak } from '../../context/cache/locate-break.ts';
import {
  type ActorAddress,
  addUsage,
  type AgentId,
  type ConversationId,
  type PromptReceipt,
  type PromptRecord,
  type TurnId,
  type Usage,
} from '../../events/index.ts';
import type { EngineDeps } from '../../actors/actor/engine-deps.ts';
import { inSlices } from '../../actors/log/read-log.ts';
import type { AgentRuntime } from '../../actors/actor/agent-runtime.ts';
import { replayPrompts } from './replay-prompts.ts';
import { usageOf } from './trace.ts';
import { chargeWork } from '../../base/work.ts';

/** One model call: the simulated cache of a vendor beside the usage that the provider reported. Costs are in fresh input tokens. */
export interface CostRow extends Omit<CacheOutcome, 'brokeAt'> {
  /** Id of the turn. */
  turn: TurnId;
  /** Number of the call in the turn, from 1. */
  step: number;
  /** Approximate time, ms since the epoch. */
  at: number;
  /** Tokens of the answer. */
  output: number;
  /** Where and why this prompt stops repeating the one before it. */
  broke: CacheBreak | null;
  /** Pause before this call, ms; null if it was shorter than the lifetime of the cache. */
  coldAfterMs: number | null;
  /** Null if nothing was reported or the journal is gone. */
  reported: Usage | null;
  /** Whether the prompt was rendered again byte for byte as sent. */
  verified: boolean;
}

/** Cost of the model calls of an agent under the cache of a vendor. */
export interface CostReport {
  /** Id of the conversation. */
  conversation: ConversationId;
  /** Id of the agent. */
  agent: AgentId;
  /** Whose rules of caching were applied. */
  vendor: CacheVendor;
  /** The model of the last call: its family determines minimum sizes and prices. */
  model: string;
  /** One per model call, oldest first. */
  rows: CostRow[];
  /** `uncached`: the cost without any cache. */
  total: CacheReport['total'] & { uncached: number };
  /** Sum over the rows with reported usage. */
  reported: Usage | null;
}

export interface CostOptions {
  /** Default: the vendor of the agent's provider and model. */
  vendor?: CacheVendor | undefined;
  /** Called for each turn before its first prompt is rendered. */
  onTurn?: ((turn: TurnId) => void) | undefined;
}

/** A model call without its messages, so that all calls fit into memory. Prompts share their blocks. */
type Call = Pick<CostRow, 'turn' | 'step' | 'broke' | 'reported' | 'verified'> & { request: CacheRequest };

/**
 * The cost of all prompts of an agent in a conversation with a vendor's cache. Requests of other agents are left out.
 */
export async function cacheCost(
  deps: EngineDeps,
  address: ActorAddress,
  runtime: AgentRuntime,
  { vendor, onTurn }: CostOptions = {},
): Promise<CostReport> {
  const calls: Call[] = [];
  let before: PromptRecord | null = null;
  for await (const { prompt, whole, at, answer } of replayPrompts(deps, address, runtime)) {
    const { turn, step, verified } = prompt;
    if (turn === null) continue;
    if (turn !== before?.turn) onTurn?.(turn);
    const reported = await reportedFor(deps, address, prompt);
    await countInSlices(deps, whole, before);
    const request = cacheRequestOf(whole, {
      at,
      output: reported?.output ?? answer,
      count: deps.countTokens,
    });
    calls.push({ turn, step, verified, reported, request, broke: before && locateBreak(before, whole) });
    before = whole;
  }
  const { provider, model } = before ?? runtime.profile;
  return {
    conversation: address.conversation,
    agent: address.agent,
    ...priced(calls, vendor ?? vendorOf(provider, model), model),
  };
}

/** Messages that are counted and charged at a time. */
const CHARGED = 200;

/** Counts the tokens of the messages that `before` lacks, since the prompts of one agent share their messages. */
async function countInSlices(
  { clock, countTokens }: Pick<EngineDeps, 'clock' | 'countTokens'>,
  { messages }: PromptRecord,
  before: PromptRecord | null,
): Promise<void> {
  const known = new Set(before?.messages);
  const fresh = messages.filter((message) => !known.has(message));
  for (let from = 0; from < fresh.length; from += CHARGED) {
    await inSlices(clock, countMessages(fresh.slice(from, from + CHARGED), countTokens));
    await chargeWork(CHARGED, 0);
  }
}

function priced(
  calls: readonly Call[],
  vendor: CacheVendor,
  model: string,
): Omit<CostReport, 'conversation' | 'agent'> {
  const rules = cacheRules(vendor, model);
  const { requests, total } = simulateCache(
    calls.map(({ request }) => request),
    rules,
  );
  const rows = requests.map(({ input, read, written, fresh, cost }, index): CostRow => {
    const { request, ...call } = calls[index] as Call;
    const { at, output } = request;
    const pause = at - (calls[index - 1]?.request.at ?? at);
    const coldAfterMs = pause >= rules.ttlMs ? pause : null;
    return { ...call, at, input, read, written, fresh, output, cost, coldAfterMs };
  });
  const reported = rows.flatMap((row) => row.reported ?? []);
  return {
    vendor,
    model,
    rows,
    total: { ...total, uncached: total.input + total.output * rules.price.output },
    reported: reported.length > 0 ? reported.reduce(addUsage) : null,
  };
}

/** Null for a scripted model: its figures are guesses. */
async function reportedFor(
  { store }: EngineDeps,
  { tenant }: ActorAddress,
  receipt: PromptReceipt,
): Promise<Usage | null> {
  return receipt.provider === 'scripted' ? null : usageOf(store, tenant, receipt);
}

const BY_MODEL: readonly (readonly [RegExp, CacheVendor])[] = [
  [/claude/i, 'anthropic'],
  [/gemini/i, 'gemini'],
  [/deepseek/i, 'deepseek'],
];

/** The vendor whose cache serves an agent. A scripted model counts as Anthropic, the vendor with breakpoints. */
function vendorOf(provider: string, model: string): CacheVendor {
  if (provider === 'openai' || provider === 'codex') return 'openai';
  if (!['openai-compatible', 'ai-sdk', 'custom'].includes(provider)) return 'anthropic';
  return BY_MODEL.find(([pattern]) => pattern.test(model))?.[1] ?? 'openai';
}
