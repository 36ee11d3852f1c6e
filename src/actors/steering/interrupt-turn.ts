import type { ActorAddress, Event, TurnId } from '../../events/index.ts';
import { isUnheard } from '../../machines/membership.ts';
import type { EngineDeps } from '../engine/engine-deps.ts';
import { busyPolicyOf } from './busy-policy.ts';
import { reachOf } from './reach.ts';

/**
 * The turn of an agent that an event breaks off: the one at work without it. A hint, as wakes are: what is pinned in this
 * very moment looks for itself before its next step.
 */
export async function turnToInterrupt(
  { store, agents, registry }: Pick<EngineDeps, 'store' | 'agents' | 'registry'>,
  address: ActorAddress,
  event: Event,
): Promise<TurnId | null> {
  const runtime = agents.get(address.agent);
  if (!runtime || busyPolicyOf(event, runtime) !== 'interrupt') return null;
  const live = registry.find(address);
  if (live && isUnheard(live.tasks, address.agent, event)) return null;
  const turn = (await store.readActor(address))?.turn;
  return turn && reachOf(turn) < event.seq ? turn.id : null;
}
