import * as z from 'zod';
import { Amount, NOTHING, toCount } from '../turn/call-cost.ts';

/** What one budget has spent, and what its calls under way may cost. */
export const Account = z.strictObject({
  spent: Amount,
  held: z.record(z.string(), Amount.extend({ until: z.int() })),
});
export type Account = z.infer<typeof Account>;

export const NEW_ACCOUNT: Account = { spent: NOTHING, held: {} };

/** Null: no limit. */
export interface Ceiling {
  tokens: number | null;
  microUsd: number | null;
}

export interface Hold extends Amount {
  id: string;
  /** After this the held amount counts as spent, ms since the epoch. */
  until: number;
}

export type Placed = { ok: true } | { ok: false; spent: Amount; held: Amount };

/** An unchanged account is returned as the same object. */
export interface Change<R> {
  state: Account;
  result: R;
}

export function add(a: Amount, b: Amount): Amount {
  return { tokens: toCount(a.tokens + b.tokens), microUsd: toCount(a.microUsd + b.microUsd) };
}

export function heldIn({ held }: Account): Amount {
  return Object.values(held).reduce<Amount>(add, NOTHING);
}

export function fits({ tokens, microUsd }: Amount, ceiling: Ceiling): boolean {
  return tokens <= (ceiling.tokens ?? Infinity) && microUsd <= (ceiling.microUsd ?? Infinity);
}

/** Refuses a hold if spent, held and asked amounts together exceed the ceiling. The same id replaces its earlier hold. */
export function holdAmount(
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

/** Replaces a hold by what its call cost. A missing hold was settled before. */
export function settle(account: Account, id: string, { tokens, microUsd }: Amount): Change<void> {
  const { [id]: hold, ...held } = account.held;
  if (!hold) return { state: account, result: undefined };
  return { state: { spent: add(account.spent, { tokens, microUsd }), held }, result: undefined };
}

/** Counts overdue holds as spent: they will not be settled, and their calls may have been paid. */
export function withoutOverdue(account: Account, now: number): Account {
  const overdue = Object.entries(account.held).filter(([, { until }]) => until <= now);
  return overdue.reduce((left, [id, hold]) => settle(left, id, hold).state, account);
}
