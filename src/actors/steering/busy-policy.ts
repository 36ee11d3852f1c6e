import { type BusyPolicy, type Event, type EventDraft, isTaskEnd } from '../../events/index.ts';
import type { AgentRuntime } from '../engine/agent-runtime.ts';

/**
 * What becomes of an event to an agent at work: what its author asks for, else what the agent is set to. The end of a task
 * that the agent waits for goes to its running turn; that its own task is called off breaks it off.
 */
export function busyPolicyOf(
  event: Event | EventDraft,
  runtime: Pick<AgentRuntime, 'whileBusy'>,
): BusyPolicy {
  if (isCalledOff(event)) return 'interrupt';
  // The call that was approved is made at the start of a turn, and a retry asks for one.
  if (event.kind === 'approval.decided' || event.kind === 'command') return 'queue';
  if (isTaskEnd(event)) return 'steer';
  return event.whileBusy ?? runtime.whileBusy;
}

/** In the thread of a task, to its assignee. */
function isCalledOff({ kind, id }: Event | EventDraft): boolean {
  return kind === 'delegation.aborted' && id.endsWith(':abort');
}
