import { startTopology, type RedisTopology, type TopologyKind } from '../services/redis-topology.ts';

const KINDS: readonly string[] = ['Redis Cluster', 'Redis Sentinel'] satisfies TopologyKind[];
const wanted = process.env['TROUPE_TEST_REDIS'];

/** The kind that this run is about. Tests that kill its servers start their own. */
export const TOPOLOGY = wanted !== undefined && KINDS.includes(wanted) ? (wanted as TopologyKind) : null;

export async function openTopology(): Promise<RedisTopology> {
  const topology = await startTopology(TOPOLOGY ?? 'Redis Cluster');
  if ('not' in topology) throw new Error(topology.not);
  return topology;
}
