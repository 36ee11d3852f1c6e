import type { ActorRecord, AgentId, Session, TurnId } from '../events/index.ts';
import type { UnreadableActor } from '../store/store.ts';
import { restoreAgent } from '../machines/snapshot.ts';
import type { EngineDeps } from './engine-deps.ts';

/** One actor as an operator sees it: the live machine where this process runs it, else what the record says. */
export interface ActorStatus {
  agent: AgentId;
  status: 'idle' | 'running' | 'waiting' | 'paused' | 'failed' | 'retired';
  /** State path of the machine, as `working.streaming`. */
  state: string;
  lastProcessedIndex: number;
  cursor: number | null;
  session: Session | null;
  turn: TurnId | null;
  attempt: number | null;
  lastTurn: TurnId | null;
  /** Why its record cannot be read. What else sets an actor aside is told by an `error` event. */
  problem?: string;
}

export function actorStatus(deps: EngineDeps, record: ActorRecord | UnreadableActor): ActorStatus {
  if ('address' in record) return unreadable(record);
  const live = deps.registry.find(record);
  const state = record.parked ?? (live?.lease ? pathOf(live.machine.getSnapshot().value) : stateOf(record));
  return {
    agent: record.agent,
    status: statusOf(state),
    state,
    lastProcessedIndex: record.processed,
    cursor: record.cursor,
    session: record.session,
    turn: record.turn?.id ?? null,
    attempt: record.turn?.attempt ?? null,
    lastTurn: record.lastTurn,
  };
}

/** One of a newer version is at work elsewhere: nothing is wrong with it. */
function unreadable(record: UnreadableActor): ActorStatus {
  const unknown = { cursor: null, session: null, turn: null, attempt: null, lastTurn: null };
  const { agent } = record.address;
  if ('newer' in record) {
    const problem = `actor_newer: ${record.newer}`;
    return { agent, status: 'waiting', state: 'newer', lastProcessedIndex: 0, ...unknown, problem };
  }
  const problem = `actor_corrupt: ${record.corrupt}`;
  return { agent, status: 'failed', state: 'failed', lastProcessedIndex: 0, ...unknown, problem };
}

function stateOf(record: ActorRecord): string {
  if (record.turn) return 'working';
  try {
    return pathOf(restoreAgent(record.snapshot, record.machineVersion).value);
  } catch {
    // What is wrong with it is told by who takes it up.
    return 'idle';
  }
}

function statusOf(state: string): ActorStatus['status'] {
  const [top] = state.split('.');
  if (top === 'working' || top === 'backoff') return 'running';
  if (top === 'waiting' || top === 'paused' || top === 'failed' || top === 'retired') return top;
  return 'idle';
}

/** `{working: 'streaming'}` as `working.streaming`. */
function pathOf(value: unknown): string {
  if (typeof value === 'string') return value;
  return Object.entries(value as Record<string, unknown>)
    .map(([parent, child]) => `${parent}.${pathOf(child)}`)
    .join(' ');
}
