/**
 * How each vendor caches prompts, and at what prices, relative to one fresh input token. As published by the vendors
 * in autumn 2026; assumptions are marked. For all vendors a changed byte breaks everything behind it, and another
 * model, effort, thinking mode or tool set is another cache.
 */
export type CacheVendor = 'anthropic' | 'openai' | 'gemini' | 'deepseek';

export interface CacheRules {
  readonly vendor: CacheVendor;
  readonly match: CacheMatch;
  /** Shorter prefixes are neither written nor read. */
  readonly minimumTokens: number;
  /** Reads are rounded down to a multiple of this. */
  readonly stepTokens: number;
  /** Lifetime since the last use. A read counts as a use. */
  readonly ttlMs: number;
  /** Requests with different cache keys share nothing. */
  readonly routedByKey: boolean;
  /** `write` is the price of tokens written to the cache, `output` of generated tokens. */
  readonly price: { readonly read: number; readonly write: number; readonly output: number };
}

/**
 * breakpoints      only prefixes that ended at a breakpoint are cached; a read walks back from each breakpoint
 * longest-prefix   whatever a request has in common with an earlier one
 * whole-requests   only a prefix that was a whole earlier request: its input, or its input and output
 */
type CacheMatch =
  | { readonly kind: 'breakpoints'; readonly most: number; readonly lookbackBlocks: number }
  | { readonly kind: 'longest-prefix' }
  | { readonly kind: 'whole-requests' };

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** The first matching pattern decides. */
type ByModel = readonly (readonly [RegExp, number])[];

const ANTHROPIC_MINIMUM: ByModel = [
  [/(opus|fable|mythos)-5/, 512],
  [/opus-4-[567]|haiku-4/, 4_096],
  [/haiku/, 2_048],
];
const OPENAI_READ: ByModel = [
  [/gpt-5/, 0.1],
  [/gpt-4\.1|o3|o4/, 0.25],
];
const OPENAI_OUTPUT: ByModel = [
  [/gpt-5\.[4-9]/, 6],
  [/gpt-5/, 8],
];
const GEMINI_MINIMUM: ByModel = [
  [/gemini-2\.5/, 2_048],
  [/gemini-3-flash/, 1_024],
];
const GEMINI_OUTPUT: ByModel = [[/gemini-3/, 6]];

interface CacheOptions {
  /** Anthropic only: entries live an hour and cost 2x to write. */
  hour?: boolean;
}

export function cacheRules(
  vendor: CacheVendor,
  model: string,
  { hour = false }: CacheOptions = {},
): CacheRules {
  switch (vendor) {
    case 'anthropic':
      return {
        vendor,
        match: { kind: 'breakpoints', most: 4, lookbackBlocks: 20 },
        minimumTokens: lookUp(ANTHROPIC_MINIMUM, model, 1_024),
        stepTokens: 1,
        ttlMs: hour ? HOUR_MS : 5 * MINUTE_MS,
        routedByKey: false,
        price: { read: 0.1, write: hour ? 2 : 1.25, output: 5 },
      };
    case 'openai':
      return {
        vendor,
        match: { kind: 'longest-prefix' },
        minimumTokens: 1_024,
        stepTokens: 128,
        ttlMs: 10 * MINUTE_MS,
        routedByKey: true,
        price: { read: lookUp(OPENAI_READ, model, 0.5), write: 1, output: lookUp(OPENAI_OUTPUT, model, 4) },
      };
    case 'gemini':
      return {
        vendor,
        match: { kind: 'longest-prefix' },
        minimumTokens: lookUp(GEMINI_MINIMUM, model, 4_096),
        stepTokens: 1,
        // Not published ("a short amount of time"): assumed to equal OpenAI's.
        ttlMs: 10 * MINUTE_MS,
        routedByKey: false,
        price: { read: 0.1, write: 1, output: lookUp(GEMINI_OUTPUT, model, 8) },
      };
    case 'deepseek':
      return {
        vendor,
        // DeepSeek also caches prefixes shared by several requests, and pieces of very long ones, but does not publish
        // where they end. Both are left out, so that no layout scores by luck.
        match: { kind: 'whole-requests' },
        minimumTokens: 64,
        stepTokens: 64,
        // Published as "a few hours to a few days".
        ttlMs: 6 * HOUR_MS,
        routedByKey: false,
        price: { read: 0.03, write: 1, output: 2 },
      };
  }
}

function lookUp(table: ByModel, model: string, otherwise: number): number {
  return table.find(([pattern]) => pattern.test(model))?.[1] ?? otherwise;
}
