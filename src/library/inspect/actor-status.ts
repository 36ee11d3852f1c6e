import {
  type ActorRecord,
  type AgentId,
  type Event,
  type PromptTokens,
  type Unavailability,
  runtimeId,
  type Session,
  type TurnId,
} from '../../events/index.ts';
import type { ConversationKey, UnreadableActor } from '../../store/store.ts';
import { agentLifecycle, pathOf, restoreAgent } from '../../machines/agent-lifecycle.ts';
import { availabilityOf } from '../../machines/availability-fold.ts';
import { availability } from '../../machines/availability.ts';
import { type EventDescription, legalIn } from '../../machines/describe.ts';
import { newParticipants } from '../../machines/task-fold.ts';
import { endOf, mayRetry } from '../../actors/conversations/commands.ts';
import type { EngineDeps } from '../../actors/actor/engine-deps.ts';
import { readReceipts } from './prompts.ts';
import type { Transition } from '../../actors/actor/registry.ts';

/** One actor as an operator sees it: its live machine if this process runs it, else its record. */
export interface ActorStatus {
  /** Id of the agent. */
  agent: AgentId;
  /** What it does: it rests, was addressed and has not begun, works, waits for a task, is paused, has failed or is retired. */
  status: 'idle' | 'queued' | 'running' | 'waiting' | 'paused' | 'failed' | 'retired';
  /** State path of the machine, as `working.streaming`. */
  state: string;
  /** Seq up to which its events are settled. */
  lastProcessedIndex: number;
  /** Seq up to which its running turn reads. Null: no turn runs. */
  cursor: number | null;
  /** Its session with a provider that keeps one. Null: none. */
  session: Session | null;
  /** Id of the running turn. Null: none. */
  turn: TurnId | null;
  /** Number of the start of the running turn, from 1. Null: none runs. */
  attempt: number | null;
  /** Id of the last turn that ended. Null: none. */
  lastTurn: TurnId | null;
  /** Size of the last prompt of its last turn. Null: it has sent none, or not in this conversation. */
  tokens: PromptTokens | null;
  /** Commands that would have an effect now. */
  can: ActorCommand[];
  /** Events that its machines accept in this state; guards are not evaluated. */
  legal: EventDescription[];
  /** The last transition of the live machine; null if another process runs it. */
  last: Transition | null;
  /** Why its record cannot be read. An `error` event reports every other reason for a failed actor. */
  problem?: string;
}

type ActorCommand = 'abort' | 'pause' | 'resume' | 'retry' | 'retire' | 'reinstate' | 'compact';

export async function actorStatuses(
  deps: EngineDeps,
  log: ConversationKey & { head: number },
): Promise<ActorStatus[]> {
  const records = await deps.store.listActors(log);
  return Promise.all(
    records.map(async (record) => {
      if ('address' in record) return unreadable(record);
      const end = record.lastTurn && (await deps.store.readById(record, runtimeId(record.lastTurn, 'end')));
      const tokens = await tokensOf(deps, record, end);
      const actor = { ...actorStatus(deps, record, isRetriable(record, end)), tokens };
      const isQueued = actor.status === 'idle' && (await isAddressed(deps, record, log.head));
      return isQueued ? { ...actor, status: 'queued' as const } : actor;
    }),
  );
}

async function isAddressed({ store }: EngineDeps, record: ActorRecord, head: number): Promise<boolean> {
  if (head <= record.processed) return false;
  return (await store.addressed(record, { after: record.processed, upTo: head })).length > 0;
}

/** Tokens from the receipt of the last step, which the end of the turn usually names. */
async function tokensOf(
  deps: EngineDeps,
  { tenant, conversation, lastTurn, turn: pinned }: ActorRecord,
  end: Event | null,
): Promise<PromptTokens | null> {
  const turn = lastTurn ?? pinned?.id;
  if (!turn) return null;
  const step = end?.kind === 'turn.done' ? end.body.steps : 0;
  const named = step > 0 ? await deps.store.readReceipt(tenant, turn, step) : null;
  const receipt = named ?? (await readReceipts(deps, tenant, turn)).at(-1);
  return receipt?.conversation === conversation ? receipt.tokens : null;
}

function actorStatus(deps: EngineDeps, record: ActorRecord, canRetry: boolean): Omit<ActorStatus, 'tokens'> {
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
    can: acceptedBy(record, { canRetry, isRunning: isHeld || record.parked === null }),
    legal: legalFor(record.parked, state),
    last: live?.last ?? null,
  };
}

/** The commands that would have an effect on an actor at present. */
function acceptedBy(
  record: ActorRecord,
  { canRetry, isRunning }: { canRetry: boolean; isRunning: boolean },
): ActorCommand[] {
  const { turn, lastTurn, parked } = record;
  return [
    // A pinned turn of an agent that is paused, failed or retired can be aborted only while it still runs.
    ...(turn && isRunning ? (['abort'] as const) : []),
    ...(canRetry ? (['retry'] as const) : []),
    ...availabilityCommands(record),
    // Before its first turn there is nothing to compact.
    ...(lastTurn !== null && parked !== 'retired' ? (['compact'] as const) : []),
  ];
}

const AVAILABILITY_COMMANDS = {
  PAUSE: 'pause',
  RESUME: 'resume',
  RETIRE: 'retire',
  REINSTATE: 'reinstate',
} as const;

/** Commands about the availability of an agent. An agent in a turn is not offered `retire`. */
function availabilityCommands({ parked, turn }: ActorRecord): ActorCommand[] {
  const accepted = legalIn(availability, availabilityOf(parked)).map(({ event }) => event);
  return Object.entries(AVAILABILITY_COMMANDS)
    .filter(([event]) => accepted.includes(event) && !(event === 'RETIRE' && turn && parked === null))
    .map(([, command]) => command);
}

/** An available agent accepts the events of both machines, any other only those of its availability. */
function legalFor(parked: Unavailability | null, state: string): EventDescription[] {
  const available = legalIn(availability, availabilityOf(parked));
  return parked === null ? [...legalIn(agentLifecycle, state), ...available] : available;
}

/** Assumes that no agent is away and nothing is archived: only the whole log would show it. */
const ALL_PRESENT = newParticipants();

function isRetriable(record: ActorRecord, lastEnd: Event | null): boolean {
  const turn = record.turn?.id ?? record.lastTurn;
  if (turn === null) return false;
  const end = record.turn ? null : lastEnd;
  const may = mayRetry({ address: record, turn, ended: endOf(end), record, participants: ALL_PRESENT });
  return may.kind !== 'refused';
}

/** A record of a newer version is no fault: a newer process runs the actor. */
function unreadable(record: UnreadableActor): ActorStatus {
  const { agent } = record.address;
  const unknown = { cursor: null, session: null, turn: null, attempt: null, lastTurn: null };
  const blank = { agent, lastProcessedIndex: 0, ...unknown, tokens: null, last: null };
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
    // The process that activates the actor reports the fault.
    return 'idle';
  }
}

function statusOf(state: string): ActorStatus['status'] {
  const [top] = state.split('.');
  if (top === 'working' || top === 'backoff') return 'running';
  if (top === 'waiting' || top === 'paused' || top === 'failed' || top === 'retired') return top;
  return 'idle';
}
