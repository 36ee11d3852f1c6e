import { type Amount, askedAmount, type CallEnd, spent } from '../turn/call-cost.ts';
import type { Paid, PaidCall } from '../turn/feature-types.ts';
import type { BudgetLedger, BudgetPlace, BudgetRefusal, BudgetTicket } from './ledger.ts';
import type { Clock } from '../../base/clock.ts';
import type { TurnRun } from '../turn/turn-run.ts';

/** Makes a model call if every budget allows it, and counts its cost. If `make` throws, the hold stays: the call may have been paid. */
export async function paidCall<T>(
  parts: Parameters<typeof takeBudget>[0],
  { id, asked, price }: PaidCall,
  place: BudgetPlace,
  make: () => Promise<{ outcome: T; end: CallEnd }>,
): Promise<Paid<T>> {
  const taken = await takeBudget(parts, place, { id, ...askedAmount(asked, price) });
  if (taken.kind === 'refused') return { kind: 'refused', message: taken.refusal.message };
  if (taken.kind === 'aborted') return taken;
  const made = spent(await make(), asked, price);
  await parts.ledger.settle(taken.ticket, made.spent);
  return made;
}

/** Longest wait for calls under way, which hold more than they will cost. */
const MAX_WAIT_MS = 60_000;
const RETRY_MS = 1_000;

type Taken =
  | { kind: 'held'; ticket: BudgetTicket }
  | { kind: 'refused'; refusal: BudgetRefusal }
  | { kind: 'aborted' };

/** Reserves one model call. A spent budget refuses at once; one that is merely held is asked again for a while. */
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
  const deadline = clock.monotonic() + MAX_WAIT_MS;
  for (;;) {
    const reserved = await ledger.reserve(place, hold);
    if (reserved.ok) return { kind: 'held', ticket: reserved.ticket };
    const { refusal } = reserved;
    if (!refusal.isHeld || clock.monotonic() >= deadline) return { kind: 'refused', refusal };
    await clock.sleep(RETRY_MS * (0.5 + random()), signal);
    if (signal.aborted) return { kind: 'aborted' };
  }
}

/** Parts to reserve with for the calls of a turn. A lost lease or a shutdown ends the waiting. */
export function budgetPartsOf(
  ledger: BudgetLedger,
  { deps, lease }: TurnRun,
): Parameters<typeof takeBudget>[0] {
  const { clock, random, stopping } = deps;
  return { ledger, clock, random, signal: AbortSignal.any([lease.signal, stopping]) };
}

/** The budgets of a turn. A thread is paid by its root conversation. */
export function placeOf({ live }: TurnRun): BudgetPlace {
  const { tenant, conversation, agent } = live.address;
  const opened = live.tasks.thread?.opened;
  if (!opened) return { tenant, root: conversation, agent };
  return { tenant, root: opened.root, agent, tree: opened.tree ?? '' };
}
