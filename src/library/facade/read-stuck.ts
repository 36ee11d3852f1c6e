import type { EngineDeps } from '../../actors/actor/engine-deps.ts';
import { undefinedWork } from '../../actors/engine/undefined-agents.ts';
import { isGranted, rangesOf } from '../access/index.ts';
import type { AgentId, ConversationId, TenantId } from '../../events/index.ts';
import {
  type StuckLine,
  type StuckQuery,
  type StuckReport,
  STUCK_AFTER,
  stuckReasons,
  unansweredLine,
  undefinedLine,
} from '../inspect/stuck-reasons.ts';
import { rankOf, type Standing } from '../projection/standing.ts';
import type { HeardTurn } from './live-book.ts';
import { liveTurns, turnsNow } from './turns-now.ts';

const ASKS = rankOf('asks');

/** Most lines of one answer. */
export const MOST_STUCK = 1_000;

/** What is stuck in a tenant. Names nobody of another tenant. */
export async function readStuck(
  deps: EngineDeps,
  tenant: TenantId,
  heard: readonly HeardTurn[],
  { afterMs, limit = 100, among }: StuckQuery,
): Promise<StuckReport> {
  const after =
    afterMs === undefined
      ? STUCK_AFTER
      : { modelMs: afterMs, toolsMs: afterMs, backoffMs: afterMs, slotMs: afterMs, answerMs: afterMs };
  const now = deps.clock.now();
  const asked = unanswered(deps, { tenant, limit, among, before: now - after.answerMs + 1 }, now);
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
  const stuck = [
    ...(await undefinedLines(deps, tenant, { among, afterMs }, now)),
    ...stuckReasons({ running, waiting }, now, after),
  ];
  const { lines, total } = await asked;
  const servers = awayServers(deps);
  return {
    ...(servers.length > 0 && { awayServers: servers }),
    stuck: [...stuck, ...lines].slice(0, Math.min(limit, MOST_STUCK)),
    total: Math.min(stuck.length + total, MOST_STUCK),
  };
}

function awayServers({ agents }: EngineDeps): NonNullable<StuckReport['awayServers']> {
  const without = new Map<string, AgentId[]>();
  for (const [agent, runtime] of agents)
    for (const server of runtime.awayServers) without.set(server, [...(without.get(server) ?? []), agent]);
  return [...without].map(([server, ids]) => ({ server, agents: ids }));
}

/** What waits for agents that are not defined: it does so from the first moment. */
async function undefinedLines(
  deps: EngineDeps,
  tenant: TenantId,
  { among, afterMs = 0 }: StuckQuery,
  now: number,
): Promise<StuckLine[]> {
  const work = await undefinedWork(deps, tenant);
  return work
    .filter(({ conversation, since }) => {
      if (now - since < afterMs) return false;
      return !among || isGranted({ conversations: among }, conversation);
    })
    .map(({ since, ...of }) => undefinedLine(of, since, now));
}

interface UnansweredQuery {
  tenant: TenantId;
  limit: number;
  among: readonly string[] | undefined;
  before: number;
}

/** What people have not answered, as far as the inbox has read the logs. */
async function unanswered(
  { store }: EngineDeps,
  { tenant, limit, among, before }: UnansweredQuery,
  now: number,
): Promise<{ lines: StuckLine[]; total: number }> {
  const filter = { tenant, ranks: [ASKS], to: before, ...(among && { ranges: rangesOf(among) }) };
  const [{ rows }, { ranks }] = await Promise.all([
    store.inbox.standings({ ...filter, order: 'oldest', limit: Math.min(limit, MOST_STUCK) }),
    store.inbox.countStandings(filter),
  ]);
  const lines = rows.flatMap(({ id, since, data }) => {
    if (among && !isGranted({ conversations: among }, id)) return [];
    const { asks } = JSON.parse(data) as Partial<Standing>;
    if (!asks) return [];
    const { task, agent, kind, text, count } = asks;
    const reason = { kind: 'unanswered' as const, since, task, asks: kind, text, count };
    return [unansweredLine({ conversation: id as ConversationId, agent }, reason, now)];
  });
  return { lines, total: ranks[ASKS] ?? 0 };
}
