import type { EngineDeps } from '../../actors/actor/engine-deps.ts';
import { DEFAULT_TENANT, type TenantId } from '../../events/index.ts';
import { providerLoads, type QueueReport } from '../inspect/turn-queue.ts';
import type { QueueWaits } from './queue-waits.ts';
import type { HeardTurn } from './live-book.ts';
import { liveTurns, turnsNow } from './turns-now.ts';

/** Lines of each list. */
const MOST_LINES = 100;

/** Who runs and who waits. A tenant may not see the number of other tenants' wakes. */
export async function readQueues(
  deps: EngineDeps,
  { tenant, own }: { tenant: TenantId; own: boolean },
  { heard, waits }: { heard: readonly HeardTurn[]; waits: ((present: number[]) => QueueWaits) | undefined },
): Promise<QueueReport> {
  const isWhole = !own && tenant === DEFAULT_TENANT;
  const turns = await turnsNow(deps, tenant, await liveTurns(deps, heard));
  const now = deps.clock.now();
  const { running, waiting, all } = turns;
  const present = (isWhole ? all.waiting : waiting).map(({ since }) => Math.max(0, now - since));
  const { wait = null, failed = 0 } = (isWhole && waits?.(present)) || {};
  const depth = isWhole
    ? await deps.router.depth()
    : { waiting: await deps.router.backlog(tenant), active: 0, delayed: 0 };
  return {
    ...depth,
    ...(failed > 0 && { failed }),
    ...(wait && { wait }),
    turns: {
      running: running.slice(0, MOST_LINES),
      runningTotal: running.length,
      waiting: waiting.slice(0, MOST_LINES),
      waitingTotal: waiting.length + (isWhole ? turns.more : 0),
      oldestMs: present.length === 0 ? null : Math.max(...present),
    },
    providers: providerLoads(turns.caps.providers ?? {}, all.running, all.waiting),
  };
}
