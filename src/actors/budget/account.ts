import * as z from 'zod';

const Whole = z.int().nonnegative();

/** Money in millionths of a dollar: whole numbers do not drift. */
export const Amount = z.strictObject({ tokens: Whole, microUsd: Whole });
export type Amount = z.infer<typeof Amount>;

export const NOTHING: Amount = { tokens: 0, microUsd: 0 };

/** What one budget has paid for, and what its calls under way may cost. */
export const Account = z.strictObject({
  spent: Amount,
  held: z.record(z.string(), Amount.extend({ until: z.int() })),
});
export type Account = z.infer<typeof Account>;

export const NEW_ACCOUNT: Account = { spent: NOTHING, held: {} };

/** Null: any amount. */
export interface Ceiling {
  tokens: number | null;
  microUsd: number | null;
}

export interface Hold extends Amount {
  id: string;
  /** When its call is taken for paid, ms since the epoch. */
  until: number;
}

export type Placed = { ok: true } | { ok: false; spent: Amount; held: Amount };

/** An account that nothing was done to is returned as it was. */
export interface Change<R> {
  state: Account;
  result: R;
}

export function add(a: Amount, b: Amount): Amount {
  return { tokens: whole(a.tokens + b.tokens), microUsd: whole(a.microUsd + b.microUsd) };
}

/** As an account holds it: never less than nothing, and never more than can be counted. */
export function whole(amount: number): number {
  return Math.min(Number.MAX_SAFE_INTEGER, Math.max(0, amount));
}

export function heldIn({ held }: Account): Amount {
  return Object.values(held).reduce<Amount>(add, NOTHING);
}

export function fits({ tokens, microUsd }: Amount, ceiling: Ceiling): boolean {
  return tokens <= (ceiling.tokens ?? Infinity) && microUsd <= (ceiling.microUsd ?? Infinity);
}

/** Refused only where all that was paid, may be paid and is asked for now is above the ceiling. The same id again replaces its hold. */
export function place(
  account: Account,
  { id, ...hold }: Hold,
  ceiling: Ceiling,
  now: number,
): Change<Placed> {
  const settled = withoutOverdue(account, now);
  const { [id]: _, ...others } = settled.held;
  const { spent } = settled;
  const held = heldIn({ spent, held: others });
  if (!fits(add(add(spent, held), hold), ceiling))
    return { state: account, result: { ok: false, spent, held } };
  return { state: { spent, held: { ...others, [id]: hold } }, result: { ok: true } };
}

/** The hold gives way to what its call cost. One that is not there was settled before. */
export function settle(account: Account, id: string, { tokens, microUsd }: Amount): Change<void> {
  const { [id]: hold, ...held } = account.held;
  if (!hold) return { state: account, result: undefined };
  return { state: { spent: add(account.spent, { tokens, microUsd }), held }, result: undefined };
}

/** Nobody tells any more what became of a hold that is overdue; its call may have been paid. */
export function withoutOverdue(account: Account, now: number): Account {
  const overdue = Object.entries(account.held).filter(([, { until }]) => until <= now);
  return overdue.reduce((left, [id, hold]) => settle(left, id, hold).state, account);
}
