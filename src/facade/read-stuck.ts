import type { EngineDeps } from '../actors/engine/engine-deps.ts';
import type { TenantId } from '../events/index.ts';
import {
  type StuckQuery,
  type StuckReport,
  type StuckThresholds,
  stuckReasons,
} from '../inspect/stuck-reasons.ts';
import type { HeardTurn } from './running-book.ts';
import { liveTurns, turnsNow } from './turns-now.ts';

/** Most lines of one answer. */
export const MOST_STUCK = 1_000;

/** What is stuck in a tenant. Names nobody of another tenant. */
export async function readStuck(
  deps: EngineDeps,
  tenant: TenantId,
  heard: readonly HeardTurn[],
  { afterMs, limit = 100 }: StuckQuery,
): Promise<StuckReport> {
  const after =
    afterMs === undefined
      ? thresholds(deps)
      : { modelMs: afterMs, toolsMs: afterMs, backoffMs: afterMs, slotMs: afterMs };
  const live = await liveTurns(deps, heard);
  const running = live
    .filter(({ address }) => address.tenant === tenant)
    .map(({ address: { conversation, agent }, turn, since, doing }) => ({
      conversation,
      agent,
      turn,
      since,
      doing,
    }));
  const { waiting } = await turnsNow(deps, tenant, live);
  const stuck = stuckReasons({ running, waiting }, deps.clock.now(), after).slice(0, MOST_STUCK);
  return { stuck: stuck.slice(0, limit), total: stuck.length };
}

function thresholds({ limits }: EngineDeps): StuckThresholds {
  const { stuckModelMs, stuckToolsMs, stuckBackoffMs, stuckSlotMs } = limits;
  return { modelMs: stuckModelMs, toolsMs: stuckToolsMs, backoffMs: stuckBackoffMs, slotMs: stuckSlotMs };
}
