import { TroupeError } from '../../errors.ts';
import type { EventDraft } from '../../events/index.ts';
import type { ConversationKey } from '../../store/store.ts';
import type { EngineDeps } from '../engine/engine-deps.ts';
import { busyPolicyOf } from './busy-policy.ts';

/** Throws `agent_busy` where somebody addressed is at work and takes nothing meanwhile. What is stored already is not new. */
export async function refuseBusy(
  { store, agents }: Pick<EngineDeps, 'store' | 'agents'>,
  log: ConversationKey,
  draft: EventDraft,
): Promise<void> {
  for (const agent of draft.to) {
    const runtime = agents.get(agent);
    if (!runtime || busyPolicyOf(draft, runtime) !== 'reject') continue;
    const turn = (await store.readActor({ ...log, agent }))?.turn;
    if (!turn || (await store.readById(log, draft.id))) continue;
    throw new TroupeError(
      'agent_busy',
      `@${agent} is at work (turn ${turn.id}) and takes no message meanwhile; nothing was stored. Send it again when the turn has ended, or with whileBusy "queue", "steer" or "interrupt".`,
      { agent, turn: turn.id },
    );
  }
}
