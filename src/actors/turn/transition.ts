import type { ActorAddress, TurnId } from '../../events/index.ts';
import { type AgentEvent, nextAgent, pathOf } from '../../machines/agent-lifecycle.ts';
import type { AvailabilityEvent } from '../../machines/availability-fold.ts';
import type { EngineDeps } from '../engine/engine-deps.ts';
import type { TurnRun } from './turn-run.ts';

type Teller = Pick<EngineDeps, 'clock' | 'registry' | 'onState' | 'onWarning'>;

/** Drives the machine of a turn and tells where it went. Nobody is waited for, and what a watcher throws stops nothing. */
export function advance(run: TurnRun, event: AgentEvent): void {
  const { deps, lease, live, turn, answer } = run;
  live.state = nextAgent(live.state, event);
  const at = deps.clock.now();
  live.last = { event: event.type, at };
  if (!deps.onState) return;
  const path = pathOf(live.state.value);
  // Asked to rest while it was at work, it rests from here on.
  const state = event.type === 'COMMITTED' ? (lease.record.parked ?? path) : path;
  const doing = state === 'working.acting' ? (answer?.calls.map(({ name }) => name) ?? []) : [];
  const note = { address: live.address, turn: turn.id, state, event: event.type, at, doing };
  const { failure } = run;
  if (state !== 'backoff' || !failure?.wait) return tell(deps, note);
  const { code, since, wait } = failure;
  tell(deps, { ...note, waits: { code, since, next: wait.next } });
}

/** What happens to an agent beside its turns: its availability has changed. */
export function tellParked(
  deps: Teller,
  address: ActorAddress,
  event: AvailabilityEvent['type'],
  state: string,
  turn: TurnId | null = null,
): void {
  const at = deps.clock.now();
  const live = deps.registry.find(address);
  if (live) live.last = { event, at };
  const { tenant, conversation, agent } = address;
  tell(deps, { address: { tenant, conversation, agent }, turn, state, event, at, doing: [] });
}

function tell({ onState, onWarning }: Teller, note: Parameters<NonNullable<EngineDeps['onState']>>[0]): void {
  try {
    onState?.(note);
  } catch (error) {
    onWarning(error, 'state watcher');
  }
}
