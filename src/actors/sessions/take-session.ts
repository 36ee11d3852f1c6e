import { createHash } from 'node:crypto';
import { DEFAULT_TENANT } from '../../events/index.ts';
import type { TurnRun } from '../turn/turn-run.ts';

/**
 * Makes a session the property of this turn's actor, once and for good. False if it belongs to another agent or conversation of any
 * tenant, or if this one left it earlier: nobody may bring it back, because its place in the log is not known.
 */
export async function takeSession({ deps, live, runtime, turn }: TurnRun, id: string): Promise<boolean> {
  const { tenant, conversation, agent } = live.address;
  const owner = JSON.stringify({ tenant, conversation, agent, turn: turn.id });
  const place = [runtime.profile.provider, runtime.provider.home ?? '', id];
  const key = `session/${createHash('sha256').update(JSON.stringify(place)).digest('hex').slice(0, 32)}`;
  return (await deps.store.compareAndSet(DEFAULT_TENANT, key, null, owner)) === owner;
}
