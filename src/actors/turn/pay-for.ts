import { type CallEnd, spent } from './call-cost.ts';
import type { Paid, PaidCall } from './feature-types.ts';
import type { TurnRun } from './turn-run.ts';

/** Makes a model call if every budget that applies allows it. The tree of a task always has one. */
export async function payFor<T>(
  run: TurnRun,
  call: PaidCall,
  make: () => Promise<{ outcome: T; end: CallEnd }>,
): Promise<Paid<T>> {
  const { budget } = run.deps.features;
  if (budget && (budget.hasCaps || run.live.tasks.thread !== null)) return budget.pay(run, call, make);
  return spent(await make(), call.asked, call.price);
}
