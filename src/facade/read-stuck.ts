import type { EngineDeps } from '../actors/engine/engine-deps.ts';
import type { TenantId } from '../events/index.ts';
import {
  STUCK_AFTER,
  type StuckLine,
  type StuckQuery,
  type StuckReport,
  stuckReasons,
} from '../inspect/stuck-reasons.ts';
import type { HeardTurn } from './running-book.ts';

/** Most lines of one answer. */
export const MOST_STUCK = 1_000;

/** What is stuck in a tenant. Names nobody of another tenant. */
export async function readStuck(
  deps: EngineDeps,
  tenant: TenantId,
  heard: readonly HeardTurn[],
  { afterMs, limit = 100 }: StuckQuery,
): Promise<StuckReport> {
  const now = deps.clock.now();
  const after =
    afterMs === undefined
      ? STUCK_AFTER
      : { modelMs: afterMs, toolsMs: afterMs, backoffMs: afterMs, slotMs: afterMs };
  const own = heard.filter(({ address }) => address.tenant === tenant).map(plain);
  const waiting = (deps.slotWaits?.all(now) ?? [])
    .filter(({ address }) => address.tenant === tenant)
    .map(({ address: { conversation, agent }, provider, since }) => ({
      conversation,
      agent,
      provider,
      since,
    }));
  const providerOf = (agent: HeardTurn['address']['agent']) => deps.agents.get(agent)?.profile.provider;
  const found = stuckReasons(
    {
      running: own,
      waiting,
      holders: (provider) => ({
        shown: own.filter(({ agent }) => providerOf(agent) === provider),
        count: heard.filter(({ address }) => providerOf(address.agent) === provider).length,
      }),
    },
    now,
    after,
  );
  // A process that was killed told nobody that its turns are over.
  const most = found.slice(0, MOST_STUCK);
  const holds = await Promise.all(most.map((line) => stillHolds(deps, tenant, line)));
  const stuck = most.filter((_, index) => holds[index]);
  return { stuck: stuck.slice(0, limit), total: stuck.length };
}

function plain({ address: { conversation, agent }, turn, since, doing }: HeardTurn) {
  return { conversation, agent, turn, since, doing };
}

async function stillHolds(
  { store }: EngineDeps,
  tenant: TenantId,
  { conversation, agent, turn }: StuckLine,
): Promise<boolean> {
  if (turn === null) return true;
  const record = await store.readActor({ tenant, conversation, agent }).catch(() => null);
  return record?.turn?.id === turn;
}
