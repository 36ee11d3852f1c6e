import type { Event } from '../../events/index.ts';
import type { AgentRuntime } from '../engine/agent-runtime.ts';
import { reachOf } from '../turn/pinned-turn.ts';
import type { TurnRun } from '../turn/turn-run.ts';
import { isFor, readUpTo, waitingAfter } from '../turn/waiting-events.ts';
import { busyPolicyOf } from './busy-policy.ts';

/** Events that have come for an agent at work. */
export type Beyond =
  | { kind: 'nothing' }
  | { kind: 'interrupt' }
  /** Oldest first, never empty. */
  | { kind: 'steer'; inputs: Event[] };

const NOTHING: Beyond = { kind: 'nothing' };
/** Events that need a new turn: a running turn cannot take them in. */
const BEGINS_A_TURN: readonly Event['kind'][] = ['handoff', 'delegation.opened', 'command'];

/**
 * Finds events after the inputs of a running turn that must not wait for the next turn. Nothing is folded, so the next turn
 * finds the events that are not taken. Costs one read of the head if nothing is new.
 */
export async function lookBeyond(run: TurnRun): Promise<{ seen: number; found: Beyond }> {
  const { deps, live, steer } = run;
  const head = await deps.store.head(live.address);
  if (head <= steer.seen) return { seen: steer.seen, found: NOTHING };
  return { seen: head, found: await findBeyond(run, head) };
}

async function findBeyond(run: TurnRun, head: number): Promise<Beyond> {
  const { live, turn, runtime, steer } = run;
  const { agent } = live.address;
  const fresh = await readUpTo(run, steer.seen, head);
  if (!fresh.some((event) => isFor(agent, event) && cannotWait(event, runtime))) return NOTHING;
  const reach = reachOf(turn);
  const waiting = waitingAfter(run, steer.seen === reach ? fresh : await readUpTo(run, reach, head));
  if (waiting.some((event) => busyPolicyOf(event, runtime) === 'interrupt')) return { kind: 'interrupt' };
  const barrier = waiting.findIndex(({ kind }) => BEGINS_A_TURN.includes(kind));
  const open = barrier === -1 ? waiting : waiting.slice(0, barrier);
  const last = open.findLastIndex((event) => busyPolicyOf(event, runtime) === 'steer');
  return last === -1 ? NOTHING : { kind: 'steer', inputs: open.slice(0, last + 1) };
}

/** Whether an event after the inputs of a turn interrupts it. */
export async function isInterrupted(run: TurnRun): Promise<boolean> {
  const { deps, live, turn, runtime } = run;
  const head = await deps.store.head(live.address);
  const since = await readUpTo(run, reachOf(turn), head);
  return waitingAfter(run, since).some((event) => busyPolicyOf(event, runtime) === 'interrupt');
}

function cannotWait(event: Event, runtime: AgentRuntime): boolean {
  const policy = busyPolicyOf(event, runtime);
  return policy === 'steer' || policy === 'interrupt';
}
