import {
  type ActorRecord,
  type AgentId,
  type Parked,
  runtimeId,
  type Session,
  type TurnId,
} from '../events/index.ts';
import type { ConversationKey, UnreadableActor } from '../store/store.ts';
import { agentLifecycle, pathOf, restoreAgent } from '../machines/agent-lifecycle.ts';
import { availability, availabilityOf } from '../machines/availability.ts';
import { type EventDescription, legalIn } from '../machines/describe.ts';
import { newParticipants } from '../machines/participants.ts';
import { endOf, mayRetry } from '../actors/conversations/retry-turn.ts';
import type { EngineDeps } from '../actors/engine/engine-deps.ts';
import type { Transition } from '../actors/engine/registry.ts';

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
  /** Commands that would change something now. */
  can: ActorCommand[];
  /** What its machine accepts in this state, guards not asked. */
  legal: EventDescription[];
  /** The last transition of the live machine, where this process runs it. */
  last: Transition | null;
  /** Why its record cannot be read. What else sets an actor aside is told by an `error` event. */
  problem?: string;
}

export type ActorCommand = 'abort' | 'pause' | 'resume' | 'retry' | 'retire' | 'recall';

export async function actorStatuses(deps: EngineDeps, log: ConversationKey): Promise<ActorStatus[]> {
  const records = await deps.store.listActors(log);
  return Promise.all(
    records.map(async (record) =>
      'address' in record ? unreadable(record) : actorStatus(deps, record, await isRetriable(deps, record)),
    ),
  );
}

function actorStatus(deps: EngineDeps, record: ActorRecord, canRetry: boolean): ActorStatus {
  const live = deps.registry.find(record);
  const state = record.parked ?? (live?.lease ? pathOf(live.state.value) : stateOf(record));
  const isHeld = record.owner !== '' && record.until > deps.clock.now();
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
    can: [
      // A turn of one that rests waits with it, unless it is at work still.
      ...(record.turn && (isHeld || record.parked === null) ? (['abort'] as const) : []),
      ...(canRetry ? (['retry'] as const) : []),
      ...availabilityCommands(record),
    ],
    legal: legalFor(record.parked, state),
    last: live?.last ?? null,
  };
}

const AVAILABILITY_COMMANDS = {
  PAUSE: 'pause',
  RESUME: 'resume',
  RETIRE: 'retire',
  REINSTATE: 'recall',
} as const;

/** What people may do to an agent beside its turns. Who is at work is not offered to retire. */
function availabilityCommands({ parked, turn }: ActorRecord): ActorCommand[] {
  const accepted = legalIn(availability, availabilityOf(parked)).map(({ event }) => event);
  return Object.entries(AVAILABILITY_COMMANDS)
    .filter(([event]) => accepted.includes(event) && !(event === 'RETIRE' && turn && parked === null))
    .map(([, command]) => command);
}

/** What is accepted now: of who takes turns by both machines, else by the one that keeps it from them. */
function legalFor(parked: Parked | null, state: string): EventDescription[] {
  const available = legalIn(availability, availabilityOf(parked));
  return parked === null ? [...legalIn(agentLifecycle, state), ...available] : available;
}

/** Nobody away and nothing archived: that refuses a retry too, but the whole log would have to be read for it. */
const ALL_HERE = newParticipants();

/** Whether its newest turn may be asked for again. */
async function isRetriable({ store }: EngineDeps, record: ActorRecord): Promise<boolean> {
  const turn = record.turn?.id ?? record.lastTurn;
  if (turn === null) return false;
  const end = record.turn ? null : await store.readById(record, runtimeId(turn, 'end'));
  const may = mayRetry({ address: record, turn, ended: endOf(end), record, participants: ALL_HERE });
  return may.kind !== 'refused';
}

/** One of a newer version is at work elsewhere: nothing is wrong with it. */
function unreadable(record: UnreadableActor): ActorStatus {
  const { agent } = record.address;
  const unknown = { cursor: null, session: null, turn: null, attempt: null, lastTurn: null, last: null };
  const blank = { agent, lastProcessedIndex: 0, ...unknown };
  if ('newer' in record) {
    const problem = `actor_newer: ${record.newer}`;
    return { ...blank, status: 'waiting', state: 'newer', can: [], legal: [], problem };
  }
  const problem = `actor_corrupt: ${record.corrupt}`;
  const legal = legalFor('failed', 'failed');
  return { ...blank, status: 'failed', state: 'failed', can: ['resume'], legal, problem };
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
