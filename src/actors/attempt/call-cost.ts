import * as z from 'zod';
import type { ErrorCode } from '../../base/errors.ts';
import { addUsage, NO_USAGE, type OtherCalls, type Usage, type TenantId } from '../../events/index.ts';
import { costOf, type ModelPrice } from '../../providers/prices.ts';
import type { Metrics } from '../../events/metrics.ts';
import type { AgentRuntime } from '../actor/agent-runtime.ts';

const Count = z.int().nonnegative();

/** An amount of tokens and money. Money is in millionths of a dollar, because sums of integers are exact. */
export const Amount = z.strictObject({ tokens: Count, microUsd: Count });
export type Amount = z.infer<typeof Amount>;

export const NOTHING: Amount = { tokens: 0, microUsd: 0 };

/** Clamps an amount to the integers that an account can hold: 0 to MAX_SAFE_INTEGER. */
export function toCount(amount: number): number {
  return Math.min(Number.MAX_SAFE_INTEGER, Math.max(0, amount));
}

/** Size of a model call before it is made, in tokens. */
export interface AskedCall {
  /** Tokens of the whole prompt, because messages that a session already has are charged again. */
  input: number;
  maxOutputTokens: number;
}

/** How a call ended, and what the provider reported. `heard`: tokens of the received output. */
export type CallEnd =
  /** `reportsLater`: usage that is missing here is reported with a later call. */
  | { kind: 'answered'; usage: Usage; heard: number; reportsLater: boolean }
  | { kind: 'failed'; code: ErrorCode; heard: number }
  | { kind: 'aborted'; heard: number };

/** Errors by which a vendor refuses a request without charging for it. A request without any answer may be charged. */
const UNPAID_ERRORS: readonly ErrorCode[] = [
  'context_overflow',
  'provider_auth',
  'provider_invalid_request',
  'provider_model_unknown',
  'provider_overloaded',
  'provider_quota',
  'provider_rate_limited',
  'provider_redirected',
  'provider_session_lost',
  'provider_unusable',
  'provider_unverified',
];

/** Upper bound of the cost of a call: nothing is read from a cache, and a cache write may cost more than plain input. */
export function askedAmount({ input, maxOutputTokens }: AskedCall, price: ModelPrice | null): Amount {
  const fresh: Usage = { ...NO_USAGE, input, output: maxOutputTokens };
  const plain = amountOf(fresh, price);
  const written = amountOf({ ...fresh, cacheWrite: input }, price);
  return written.microUsd > plain.microUsd ? written : plain;
}

export function amountOf(usage: Usage, price: ModelPrice | null): Amount {
  // Rounded up. The small constant compensates for errors of float addition.
  const microUsd = price === null ? 0 : Math.ceil(costOf(usage, price) * 1e6 - 1e-6);
  return { tokens: toCount(usage.input + usage.output), microUsd: toCount(microUsd) };
}

/** Tokens of a call: as reported, otherwise an estimate of what was charged. */
function spentTokens(
  end: CallEnd,
  { input }: Pick<AskedCall, 'input'>,
): { usage: Usage; isEstimate: boolean } {
  const { heard } = end;
  if (end.kind === 'answered') {
    const isReported = end.usage.input + end.usage.output > 0;
    if (isReported || end.reportsLater) return { usage: end.usage, isEstimate: false };
  }
  const isFree = end.kind === 'failed' && heard === 0 && UNPAID_ERRORS.includes(end.code);
  if (isFree) return { usage: NO_USAGE, isEstimate: false };
  return { usage: { ...NO_USAGE, input, output: heard }, isEstimate: true };
}

export function spentAmount(end: CallEnd, asked: Pick<AskedCall, 'input'>, price: ModelPrice | null): Amount {
  const isReported = end.kind === 'answered' && end.usage.input + end.usage.output > 0;
  return amountOf(isReported ? end.usage : spentTokens(end, asked).usage, price);
}

/** Records a call that is not the answer of a step, so that the end of the turn includes its usage. */
export function noteOther(
  meanwhile: { others?: OtherCalls[] },
  { outcome, model }: Pick<OtherCalls, 'outcome' | 'model'>,
  end: CallEnd,
  asked: Pick<AskedCall, 'input'>,
): void {
  const { usage, isEstimate } = spentTokens(end, asked);
  const others = (meanwhile.others ??= []);
  const same = others.find(
    (each) => each.outcome === outcome && each.model === model && (each.estimated ?? false) === isEstimate,
  );
  if (same) {
    same.calls += 1;
    same.usage = addUsage(same.usage, usage);
  } else others.push({ outcome, model, calls: 1, usage, ...(isEstimate && { estimated: true }) });
}

export function spent<T>(
  { outcome, end }: { outcome: T; end: CallEnd },
  asked: Pick<AskedCall, 'input'>,
  price: ModelPrice | null,
): { kind: 'made'; outcome: T; spent: Amount } {
  return { kind: 'made', outcome, spent: spentAmount(end, asked, price) };
}

/** Adds the cost of a call to the metrics, in the way budgets count it. */
export function countCost(
  metrics: Metrics,
  { price, profile }: Pick<AgentRuntime, 'price' | 'profile'>,
  { microUsd }: Amount,
  tenant: TenantId,
): void {
  const { provider } = profile;
  if (price === null) metrics.count('unpriced_calls', { provider });
  else metrics.count('cost_usd', { tenant, provider }, microUsd / 1e6);
}
