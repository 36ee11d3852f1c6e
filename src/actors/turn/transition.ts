import type { ActorAddress, StateNote } from '../../events/index.ts';
import { type AgentEvent, nextAgent, pathOf } from '../../machines/agent-lifecycle.ts';
import type { AvailabilityEvent } from '../../machines/availability-fold.ts';
import type { EngineDeps } from '../engine/engine-deps.ts';
import type { TurnRun } from './turn-run.ts';

type Publisher = Pick<EngineDeps, 'clock' | 'registry' | 'onLive' | 'onWarning'>;

/** Drives the machine of a turn and publishes its new state. Watchers are not awaited, and their errors are only logged. */
export function advance(run: TurnRun, event: AgentEvent): void {
  const { deps, lease, live, turn, answer } = run;
  live.state = nextAgent(live.state, event);
  const at = deps.clock.now();
  live.last = { event: event.type, at };
  if (!deps.onLive) return;
  const path = pathOf(live.state.value);
  // An agent that was paused or retired during its turn is so from its commit on.
  const state = event.type === 'COMMITTED' ? (lease.record.parked ?? path) : path;
  const doing = state === 'working.acting' ? (answer?.calls.map(({ name }) => name) ?? []) : [];
  const { tenant, conversation, agent } = live.address;
  const place = { type: 'state' as const, tenant, conversation, agent, turn: turn.id };
  const note = { ...place, state, event: event.type, at, doing };
  const { failure } = run;
  if (state !== 'backoff' || !failure?.wait) return publish(deps, note);
  const { code, since, wait } = failure;
  publish(deps, { ...note, waits: { code, since, next: wait.next } });
}

/** Publishes a change of an agent's availability. */
export function publishAvailability(
  deps: Publisher,
  { tenant, conversation, agent }: ActorAddress,
  event: AvailabilityEvent['type'],
  state: string,
): void {
  const address = { tenant, conversation, agent };
  const at = deps.clock.now();
  const live = deps.registry.find(address);
  if (live) live.last = { event, at };
  publish(deps, { type: 'state', ...address, turn: null, state, event, at, doing: [] });
}

function publish({ onLive, onWarning }: Publisher, note: StateNote): void {
  try {
    onLive?.(note);
  } catch (error) {
    onWarning(error, 'state watcher');
  }
}
