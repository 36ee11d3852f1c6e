import type { ErrorCode } from '../../errors.ts';
import { NO_USAGE, type Usage } from '../../events/index.ts';
import { costOf, type ModelPrice } from '../../providers/prices.ts';
import type { Amount } from './account.ts';
import { NOTHING, whole } from './account.ts';

/** A model call before it is made, in tokens. */
export interface AskedCall {
  /** Of the whole prompt: what a session holds is paid again. */
  input: number;
  maxOutputTokens: number;
}

/** How a call ended, and what was told of it. */
export type CallEnd =
  /** `tellsLater`: what is not told with this call comes with a later one. */
  | { kind: 'answered'; usage: Usage; heard: number; tellsLater: boolean }
  | { kind: 'failed'; code: ErrorCode; heard: number }
  | { kind: 'aborted'; heard: number };

/** What a vendor says instead of taking a request. Of one that was never answered nobody knows. */
const NOT_TAKEN: readonly ErrorCode[] = [
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
];

/** The most that it may cost as far as is known: nothing is read from a cache, and writing to one may be dearer. */
export function askedAmount({ input, maxOutputTokens }: AskedCall, price: ModelPrice | null): Amount {
  const fresh: Usage = { ...NO_USAGE, input, output: maxOutputTokens };
  const plain = amountOf(fresh, price);
  const written = amountOf({ ...fresh, cacheWrite: input }, price);
  return written.microUsd > plain.microUsd ? written : plain;
}

export function amountOf(usage: Usage, price: ModelPrice | null): Amount {
  // Rounded up; less than a millionth above a whole number is how floats add.
  const microUsd = price === null ? 0 : Math.ceil(costOf(usage, price) * 1e6 - 1e-6);
  return { tokens: whole(usage.input + usage.output), microUsd: whole(microUsd) };
}

/** What to count for it: what was reported, else what may have been paid. `heard`: tokens of what was said. */
export function spentAmount(
  end: CallEnd,
  { input }: Pick<AskedCall, 'input'>,
  price: ModelPrice | null,
): Amount {
  const { heard } = end;
  const guess = amountOf({ ...NO_USAGE, input, output: heard }, price);
  if (end.kind === 'answered') {
    const isTold = end.usage.input + end.usage.output > 0;
    return isTold || end.tellsLater ? amountOf(end.usage, price) : guess;
  }
  const isFree = end.kind === 'failed' && heard === 0 && NOT_TAKEN.includes(end.code);
  return isFree ? NOTHING : guess;
}
