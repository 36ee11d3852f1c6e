import {
  type ActorAddress,
  type BusyPolicy,
  type Event,
  type EventDraft,
  isTaskEnd,
  type TurnId,
} from '../../events/index.ts';
import type { AgentRuntime } from '../engine/agent-runtime.ts';
import { isUnheard } from '../../machines/membership.ts';
import type { EngineDeps } from '../engine/engine-deps.ts';
import { reachOf } from '../turn/pinned-turn.ts';
import { TroupeError } from '../../base/errors.ts';
import type { ConversationKey } from '../../store/store.ts';

/**
 * The treatment of an event whose agent is at work: the wish of its author, else the agent's setting. The end of a task
 * that the agent waits for steers the running turn. The cancellation of the agent's own task interrupts it.
 */
export function busyPolicyOf(
  event: Event | EventDraft,
  runtime: Pick<AgentRuntime, 'whileBusy'>,
): BusyPolicy {
  if (isCancellation(event)) return 'interrupt';
  // An approved call is made at the start of a turn, and a retry command asks for a new turn.
  if (event.kind === 'approval.decided' || event.kind === 'command') return 'queue';
  if (isTaskEnd(event)) return 'steer';
  return event.whileBusy ?? runtime.whileBusy;
}

/** Whether an event notifies an assignee, in the thread of its task, that the task is cancelled. */
function isCancellation({ kind, id }: Event | EventDraft): boolean {
  return kind === 'delegation.aborted' && id.endsWith(':abort');
}

/**
 * The running turn that an event interrupts. Only a hint, as wakes are: a turn that is pinned at this moment looks for
 * interrupting events itself before its next step.
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

/** Throws `agent_busy` if an addressed agent is at work and rejects messages meanwhile. A stored message is not refused. */
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
      `@${agent} is at work (turn ${turn.id}) and accepts no messages meanwhile; nothing was stored. Send the message again after the turn, or with whileBusy "queue", "steer" or "interrupt".`,
      { agent, turn: turn.id },
    );
  }
}
