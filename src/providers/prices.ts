import * as z from 'zod';
import type { InputOf } from '../base/input-of.ts';
import { modelTable, type Usage } from '../events/index.ts';

/** US dollars per million tokens. A dollar per token or more is a typing error. */
const Price = z.number().nonnegative().max(1_000_000);
const Prices = {
  /** Input that is neither read from a cache nor written to one. */
  input: Price,
  /** Input that is read from a cache. */
  cacheRead: Price,
  /** Input that is written to a cache. */
  cacheWrite: Price,
  /** Output, with reasoning. */
  output: Price,
};

export const PriceSetting = z.strictObject(Prices);
/** A price as a definition gives it, in US dollars per million tokens. */
export interface PriceSetting extends InputOf<typeof PriceSetting> {}

/** Price of a model, in US dollars per million tokens. */
export interface ModelPrice extends PriceSetting {
  /** Prices of all tokens of a call whose input is longer than `above` tokens. Default: the same prices. */
  long?: (PriceSetting & { above: number }) | undefined;
}

/** Approximate publication date of the price lists behind the table. */
export const PRICES_AS_OF = '2026-11-05';

type Row = readonly [
  name: string,
  input: number,
  cacheRead: number,
  cacheWrite: number,
  output: number,
  long?: Long,
];
type Long = 'gpt' | 'haiku' | 'gemini';

/**
 * The vendors' own list prices: standard tier, five-minute caches. Hosts of open weights set their own. The first match wins, so
 * specific names come first. Where a vendor charges nothing for cache writes, a written token costs as much as input. DeepSeek's
 * are its peak prices, twice the off-peak ones. The cached-input price of GPT-6.2 Sol is assumed to equal that of 6.1.
 */
const MODELS: readonly Row[] = [
  // Anthropic: cache writes cost 1.25 x input.
  ['claude-(?:fable|mythos)-5[-.]1', 10, 0.25, 12.5, 50],
  ['claude-(?:fable|mythos)-5', 10, 1, 12.5, 50],
  ['claude-opus-5[-.]5', 4, 0.2, 5, 20],
  ['claude-opus-(?:5|4[-.][5-9])(?!\\d)', 5, 0.5, 6.25, 25],
  ['claude-(?:opus-4|3-opus)', 15, 1.5, 18.75, 75],
  ['claude-sonnet-5[-.]5', 2, 0.1, 2.5, 10],
  ['claude-sonnet-5(?!\\d)', 2, 0.2, 2.5, 10],
  ['claude-(?:sonnet-4|3[-.][57]-sonnet|3-sonnet)', 3, 0.3, 3.75, 15],
  ['claude-haiku-5[-.]5', 0.1, 0.01, 0.125, 0.5, 'haiku'],
  ['claude-haiku-4', 1, 0.1, 1.25, 5],
  ['claude-3[-.]5-haiku', 0.8, 0.08, 1, 4],
  ['claude-3-haiku', 0.25, 0.03, 0.3, 1.25],
  // OpenAI: cache writes cost 1.25 x input from GPT-5.6 on.
  ['gpt-6[-.]2-astra', 8, 0.4, 10, 40, 'gpt'],
  ['gpt-6[-.][12]-sol', 2, 0.1, 2.5, 10, 'gpt'],
  ['gpt-6-sol', 2, 0.2, 2.5, 10, 'gpt'],
  ['gpt-6-luna', 0.1, 0.01, 0.125, 0.5, 'gpt'],
  ['gpt-6-astra', 10, 1, 12.5, 50, 'gpt'],
  ['gpt-5\\.6-luna', 0.2, 0.02, 0.25, 1.2, 'gpt'],
  ['gpt-5\\.6-terra', 2, 0.2, 2.5, 12, 'gpt'],
  ['gpt-5\\.6', 4, 0.4, 5, 20, 'gpt'],
  ['gpt-5\\.[45]-pro', 30, 3, 30, 180],
  ['gpt-5\\.5', 5, 0.5, 5, 30, 'gpt'],
  ['gpt-5\\.4-mini', 0.75, 0.075, 0.75, 4.5],
  ['gpt-5\\.4(?!-)', 2.5, 0.25, 2.5, 15, 'gpt'],
  ['gpt-5\\.[23](?!-pro)', 1.75, 0.175, 1.75, 14],
  ['gpt-5-mini', 0.25, 0.025, 0.25, 2],
  ['gpt-5-nano', 0.05, 0.005, 0.05, 0.4],
  ['gpt-5(?:\\.1)?(?![.\\d]|-pro)', 1.25, 0.125, 1.25, 10],
  ['gpt-4\\.1-mini', 0.4, 0.1, 0.4, 1.6],
  ['gpt-4\\.1-nano', 0.1, 0.025, 0.1, 0.4],
  ['gpt-4\\.1', 2, 0.5, 2, 8],
  ['gpt-4o-mini', 0.15, 0.075, 0.15, 0.6],
  ['gpt-4o', 2.5, 1.25, 2.5, 10],
  ['o4-mini', 1.1, 0.275, 1.1, 4.4],
  ['o3(?!-)', 2, 0.5, 2, 8],
  ['gemini-3-pro', 2, 0.2, 2, 12, 'gemini'],
  ['gemini-2\\.5-pro', 1.25, 0.125, 1.25, 10, 'gemini'],
  ['gemini-2\\.5-flash(?!-lite)', 0.3, 0.03, 0.3, 2.5],
  ['deepseek-v4-pro', 1.32, 0.044, 1.32, 3.96],
  ['deepseek-(?:v4-)?flash', 0.3, 0.006, 0.3, 1.2],
];

/** Prices of long prompts as multiples of the short ones. */
const LONG: Readonly<Record<Long, { above: number; input: number; output: number }>> = {
  gpt: { above: 272_000, input: 2, output: 1.5 },
  haiku: { above: 100_000, input: 5, output: 5 },
  gemini: { above: 200_000, input: 2, output: 1.5 },
};

function priceIn([, input, cacheRead, cacheWrite, output, long]: Row): ModelPrice {
  const price = { input, cacheRead, cacheWrite, output };
  if (!long) return price;
  const { above, ...times } = LONG[long];
  return {
    ...price,
    long: {
      above,
      input: input * times.input,
      cacheRead: cacheRead * times.input,
      cacheWrite: cacheWrite * times.input,
      output: output * times.output,
    },
  };
}

/** Null for a model that is not in the table: an unknown price is not zero. */
export const priceOf = modelTable(MODELS.map((row) => [row[0], priceIn(row)]));

const MILLION = 1_000_000;

/**
 * US dollars of one model call. Valid for a sum of calls only if the price has no `long`, which depends on the length
 * of each call.
 */
export function costOf({ input, output, cacheRead, cacheWrite }: Usage, price: ModelPrice): number {
  const { long } = price;
  const per = long && input > long.above ? long : price;
  // Input includes cache reads and writes.
  const fresh = Math.max(0, input - cacheRead - cacheWrite);
  const cost =
    fresh * per.input + cacheRead * per.cacheRead + cacheWrite * per.cacheWrite + output * per.output;
  return cost / MILLION;
}
