import type { Clock } from '../../clock.ts';
import type { Amount } from './account.ts';
import type { BudgetLedger, BudgetPlace, BudgetTicket } from './ledger.ts';
import type { BudgetRefusal } from './refusal.ts';

/** Calls under way hold more than they cost: how long one that only they stand in the way of waits for their end. */
const PATIENCE_MS = 60_000;
const LOOK_MS = 1_000;

export type Taken =
  | { kind: 'held'; ticket: BudgetTicket }
  | { kind: 'refused'; refusal: BudgetRefusal }
  | { kind: 'aborted' };

/** Reserves for one model call. A budget that is used up refuses at once; one that is only held is asked again. */
export async function takeBudget(
  {
    ledger,
    clock,
    random,
    signal,
  }: { ledger: BudgetLedger; clock: Clock; random: () => number; signal: AbortSignal },
  place: BudgetPlace,
  hold: Amount & { id: string },
): Promise<Taken> {
  const patience = clock.monotonic() + PATIENCE_MS;
  for (;;) {
    const reserved = await ledger.reserve(place, hold);
    if (reserved.ok) return { kind: 'held', ticket: reserved.ticket };
    const { refusal } = reserved;
    if (!refusal.isHeld || clock.monotonic() >= patience) return { kind: 'refused', refusal };
    await clock.sleep(LOOK_MS * (0.5 + random()), signal);
    if (signal.aborted) return { kind: 'aborted' };
  }
}
