import type { TenantId } from '../../../events/index.ts';
import type { EngineDeps } from '../../engine/engine-deps.ts';
import type { LiveActor } from '../../engine/registry.ts';
import type { TurnRun } from '../../turn/turn-run.ts';
import { isCalledOff, placesOf } from './called-off.ts';

/** Who ends a turn whose task was called off above it. */
export const CALLED_OFF = 'called off';

/** Whether a turn under way works on what was called off. One that answers a person goes on. */
export async function isTurnCalledOff({ deps, live, turn }: Pick<TurnRun, 'deps' | 'live' | 'turn'>) {
  if (live.tasks.thread === null || turn.byPerson) return false;
  return isCalledOff(deps.store, live.address.tenant, live.tasks);
}

/** Breaks off all turns of this process that work on a task, or on a part of one, however deep; or below a conversation. */
export async function stopBelow(
  deps: Pick<EngineDeps, 'store' | 'registry'>,
  tenant: TenantId,
  task: string,
): Promise<void> {
  const isBelow = ({ address, tasks }: LiveActor) =>
    address.tenant === tenant &&
    (tasks.thread?.opened.root === task || placesOf(tasks).some(({ delegation }) => delegation === task));
  const below = deps.registry.working().filter(isBelow);
  await Promise.all(
    below.map(async ({ lease, tasks }) => {
      const turn = lease?.record.turn;
      if (!lease || !turn || turn.byPerson) return;
      // Whoever reaches the channel may say so: what counts is the log.
      if (await isCalledOff(deps.store, tenant, tasks)) lease.abort(turn.id);
    }),
  );
}
