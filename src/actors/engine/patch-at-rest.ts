import { type ActorAddress, type ActorRecord } from '../../events/index.ts';
import type { ActorPatch } from '../../store/store.ts';
import type { EngineDeps } from './engine-deps.ts';
import { importOwner } from './settle-imported.ts';

/** Pause before an agent is checked again that another process holds. */
const PAUSE_MS = 20;

/** Writes to the record of an agent that no process works on, and waits until none does. Null: nothing is to be written. */
export async function patchAtRest(
  deps: EngineDeps,
  address: ActorAddress,
  patchOf: (held: ActorRecord | null) => ActorPatch | null,
): Promise<void> {
  const { store, clock, registry } = deps;
  for (;;) {
    const held = await store.readActor(address);
    if (patchOf(held) === null) return;
    const acquired = await store.acquire(address, leaseOn(deps, held), deps.log.published);
    if (acquired.kind === 'acquired') {
      registry.drop(address);
      const patch = patchOf(acquired.record) ?? {};
      if (await store.update(acquired.record, { owner: '', until: 0, ...patch })) return;
    }
    await clock.sleep(PAUSE_MS);
  }
}

/** A data directory has one owner, so leases of earlier processes are free there. */
function leaseOn(
  { process, clock, limits }: EngineDeps,
  held: { owner: string; until: number } | null,
): { owner: string; now: number; until: number } {
  const owner = importOwner(process);
  const now = clock.now();
  const isDead = limits.soleOwner && held !== null && held.owner !== owner;
  return { owner, now: isDead ? Math.max(now, held.until + 1) : now, until: now + limits.leaseMs };
}
