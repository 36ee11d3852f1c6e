import {
  cacheRequestOf,
  type CacheRules,
  cacheRules,
  type CacheBlock,
  type CacheRequest,
  simulateCache,
} from '../src/context/cache/cache-cost.ts';
import { type CompactionPolicy } from '../src/context/index.ts';
import { countTokens } from '../src/context/budget/tokens.ts';
import { fitSummaryRequest } from '../src/context/index.ts';
import { NOBODY } from '../src/context/text/people.ts';
import type { CompactionBody, Event } from '../src/events/index.ts';
import { SECRET } from '../test/support/log-player.ts';
import { Compactor, windowFor } from './compactor.ts';
import { promptFor, Replay } from './replay.ts';

export interface PricedReplay {
  calls: number;
  prunes: number;
  compactions: number;
  /** In fresh input tokens, output included; for the agent's own calls only. */
  cost: number;
  /** The part of `cost` that requests right after a compaction paid for input above the average of the others. */
  compactionCost: number;
  /** Cost of the summaries by a model: their input once, uncached, and the maximum output. */
  summaryCost: number;
  hitRate: number;
  /** Counted tokens of the largest and the mean prompt. */
  largest: number;
  mean: number;
}

export interface PriceOptions {
  /** Null: never compacts. */
  window: number | null;
  maxOutputTokens?: number;
  policy?: CompactionPolicy;
  ignoreTtl?: boolean;
}

/** What pi sends before the history, from the usage of its first request. */
const BASE: CacheBlock = { hash: 'tools and system', tokens: 1_600 };
const MAX_OUTPUT_TOKENS = 8_192;

/** Plays a log as turns of one agent, compacts as the engine would, and prices every request as Anthropic does. */
export function priceReplay(source: readonly Event[], options: PriceOptions): PricedReplay {
  const { window, maxOutputTokens = MAX_OUTPUT_TOKENS, policy, ignoreTtl = false } = options;
  const replay = new Replay(() => 'assistant');
  const compactor =
    window === null
      ? null
      : new Compactor(windowFor({ window, maxOutputTokens, fixed: BASE.tokens, ...(policy && { policy }) }));
  const requests: CacheRequest[] = [];
  const compacted = new Set<number>();
  let prunes = 0;
  for (const call of replay.play(source)) {
    const draft = compactor?.beforeCall(replay, call);
    if (draft) compacted.add(requests.length);
    if (draft?.kind === 'prune') prunes += 1;
    const { at, output } = call;
    const request = cacheRequestOf(promptFor(call), { at, output, count: countTokens });
    const breakpoints = request.breakpoints.map((index) => index + 1);
    requests.push({ ...request, blocks: [BASE, ...request.blocks], breakpoints });
  }
  const rules = rulesOf(ignoreTtl);
  const { requests: outcomes, total } = simulateCache(requests, rules);
  const inputCosts = outcomes.map(
    ({ cost }, index) => cost - (requests[index]?.output ?? 0) * rules.price.output,
  );
  const behind = inputCosts.filter((_, index) => compacted.has(index));
  const others = inputCosts.filter((_, index) => !compacted.has(index));
  const sizes = outcomes.map(({ input }) => input);
  return {
    calls: requests.length,
    prunes,
    compactions: compacted.size - prunes,
    cost: total.cost,
    compactionCost: sum(behind) - behind.length * (sum(others) / others.length),
    summaryCost: compactor ? summaryCost(replay, compactor.window.policy, rules) : 0,
    hitRate: total.hitRate,
    largest: Math.max(...sizes),
    mean: sum(sizes) / sizes.length,
  };
}

export function rulesOf(ignoreTtl: boolean): CacheRules {
  const rules = cacheRules('anthropic', 'claude-sonnet-4-5');
  return ignoreTtl ? { ...rules, ttlMs: Infinity } : rules;
}

/** The cost of the summary requests for the same compactions, built by the context module itself. */
function summaryCost(
  { log, views }: Replay,
  { summaryTokens }: CompactionPolicy,
  { price }: CacheRules,
): number {
  const people = [...views.values()][0]?.people ?? NOBODY;
  let previous: CompactionBody | null = null;
  let cost = 0;
  for (const { kind, body } of log) {
    if (kind !== 'compaction') continue;
    const after = previous?.upTo ?? 0;
    const events = log.filter(({ seq }) => seq > after && seq <= body.upTo);
    const request = fitSummaryRequest({
      previous,
      events,
      budgetTokens: summaryTokens,
      people,
      secret: SECRET,
      maxTokens: Infinity,
      count: countTokens,
    });
    cost += (request?.tokens ?? 0) + summaryTokens * price.output;
    previous = body;
  }
  return cost;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
