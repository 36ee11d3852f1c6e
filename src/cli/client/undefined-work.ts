import { undefinedActors } from '../../actors/engine/undefined-agents.ts';
import type { TroupeInput } from '../../library/config/agents-file.ts';
import { type ActorAddress, templateOf } from '../../events/index.ts';
import { systemClock } from '../../base/clock.ts';
import { openOwnStore } from './verify-source.ts';

/** The actors with work in a database, or in a data directory that no process has open, which the definition does not name. */
export async function openWork(
  { agents, templates = [] }: TroupeInput,
  { data, env }: { data: string; env: Record<string, string | undefined> },
): Promise<ActorAddress[]> {
  const ids = new Set<string>(agents.map(({ id }) => id));
  const kinds = new Set<string>(templates.map(({ id }) => id));
  const has = (agent: string) => ids.has(agent) || kinds.has(templateOf(agent) ?? '');
  const { store, close } = await openOwnStore(data, env);
  try {
    return await undefinedActors({ store, agents: { has }, clock: systemClock });
  } finally {
    await close();
  }
}
