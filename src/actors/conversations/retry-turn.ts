import { TroupeError } from '../../base/errors.ts';
import {
  type ActorAddress,
  type ActorRecord,
  type AgentId,
  type Author,
  type Event,
  type EventId,
  isImported,
  parseTurnId,
  runtimeId,
  turnId,
  type TurnId,
  isAbout,
} from '../../events/index.ts';
import { isRetired } from '../../machines/membership.ts';
import type { Participants } from '../../machines/participants.ts';
import type { ConversationKey } from '../../store/store.ts';
import type { EngineDeps } from '../engine/engine-deps.ts';
import { appendFirst, type ConversationDeps } from './conversation-deps.ts';

/** The facts that decide whether a turn may be retried. */
export interface RetryFacts {
  address: ActorAddress;
  turn: TurnId;
  /** End of the turn in the log. Null: none. */
  ended: 'done' | 'failed' | 'aborted' | null;
  /** Null if it is unreadable: the agent has failed, or will. */
  record: Pick<ActorRecord, 'turn' | 'turnNo' | 'parked'> | null;
  participants: Pick<Participants, 'tasks'>;
}

/** `resume`: the agent failed with this turn unended, or after a turn that needs no retry. */
export type MayRetry = { kind: 'retry' } | { kind: 'resume' } | { kind: 'refused'; why: string };

export function mayRetry({ address, turn, ended, record, participants }: RetryFacts): MayRetry {
  const refusal = refuseAbsent(address, record, participants);
  if (refusal !== null) return refused(refusal);
  const needsRetry = ended === 'failed' || ended === 'aborted';
  if (!record) return { kind: needsRetry ? 'retry' : 'resume' };
  const newest = record.turn?.id ?? turnId(address, record.turnNo);
  if (newest !== turn && isOlder(turn, record)) return refused(`a later turn exists: ${newest}`);
  if (record.parked === 'failed') return { kind: needsRetry ? 'retry' : 'resume' };
  if (record.turn) return refused('it is running');
  if (ended === 'done') return refused('it is done');
  if (ended === null) return refused('it is just ending: try again');
  if (record.parked === 'paused') return refused(`@${address.agent} is paused: resume it first`);
  return { kind: 'retry' };
}

function isOlder(turn: TurnId, record: Pick<ActorRecord, 'turn' | 'turnNo'>): boolean {
  return record.turn !== null || (parseTurnId(turn)?.number ?? 0) < record.turnNo;
}

/** Why an agent takes no turns in a conversation; null if it does. */
function refuseAbsent(
  { agent, conversation }: ActorAddress,
  record: RetryFacts['record'],
  { tasks }: RetryFacts['participants'],
): string | null {
  const away = tasks.away.get(agent);
  if (tasks.directions.archived) return `${conversation} is archived: reopen it first`;
  if (away) return away.blocked ? `@${agent} is blocked: unblock it first` : `@${agent} has left`;
  const isGone = isRetired(tasks, agent) || record?.parked === 'retired';
  return isGone ? `@${agent} is retired: reinstate it first` : null;
}

function refused(why: string): MayRetry {
  return { kind: 'refused', why };
}

/**
 * Retries a turn for a person. Repeated and concurrent requests, in any process, get the same event and the same new turn.
 * Throws `turn_unknown`, `command_refused`.
 *  R1  A retry comes after the end of a turn that failed or was stopped, and addresses only the agent of that turn.
 */
export async function retryTurn(
  conversations: ConversationDeps,
  tenant: ConversationKey['tenant'],
  turn: TurnId,
  by: Author,
): Promise<Event> {
  const { store, log } = conversations.deps;
  const parts = parseTurnId(turn);
  if (!parts) throw unknown(turn);
  const address = { tenant, conversation: parts.conversation, agent: parts.agent };
  const end = await store.readById(address, runtimeId(turn, 'end'));
  const record = await readRecord(store, address);
  const isRunning = record?.turn?.id === turn;
  if (!end && !isRunning && !(await hasStarted(store, address, turn))) throw unknown(turn);
  requireAgent(conversations, parts.agent);
  const participants = await conversations.participantsCache.of(address);
  const ended = endOf(end);
  const may = mayRetry({ address, turn, ended, record, participants });
  const notice = participants.failedAt.get(parts.agent) ?? 0;
  const ids = [runtimeId(turn, 'retry'), runtimeId(turn, 'resume', notice)] as const;
  const hasFailed = !record || record.parked === 'failed';
  if (may.kind === 'refused' || !hasFailed) {
    const known = await findRequest(conversations, address, ids);
    if (known) return known;
  }
  if (may.kind === 'refused') throw retryRefused(turn, address, may.why);
  const { agent } = address;
  const request =
    may.kind === 'retry'
      ? {
          id: ids[0],
          to: [agent],
          body: { command: 'retry' as const, agent, turn, ...(await givenTo(store, address, end)) },
        }
      : { id: ids[1], to: [], body: { command: 'resume' as const, agent, turn } };
  const event = await appendFirst({ log, store }, address, { ...request, author: by, kind: 'command' });
  if (hasFailed) await conversations.engine.resume(address, 'RETRY');
  return event;
}

/** An earlier request for the same turn. Its writer may have died before it woke the agent, so the agent is woken again. */
async function findRequest(
  { deps: { store, router } }: ConversationDeps,
  address: ActorAddress,
  ids: readonly EventId[],
): Promise<Event | null> {
  for (const id of ids) {
    const known = await store.readById(address, id);
    if (!known || isImported(known)) continue;
    // The sweeper makes up for a lost wake.
    await router.wake(address).catch(() => undefined);
    return known;
  }
  return null;
}

function requireAgent({ deps }: ConversationDeps, agent: AgentId): void {
  if (deps.agents.has(agent)) return;
  throw new TroupeError('agent_unknown', `there is no agent "${agent}"`, { agent });
}

function retryRefused(turn: TurnId, { agent, conversation }: ActorAddress, why: string): TroupeError {
  const message = `turn ${turn} cannot be retried: ${why}`;
  return new TroupeError('command_refused', message, { turn, agent, conversation });
}

async function hasStarted(store: EngineDeps['store'], address: ActorAddress, turn: TurnId): Promise<boolean> {
  return (await store.readById(address, runtimeId(turn, 'started'))) !== null;
}

async function readRecord(
  store: EngineDeps['store'],
  address: ActorAddress,
): Promise<Pick<ActorRecord, 'turn' | 'turnNo' | 'parked'> | null> {
  try {
    return (await store.readActor(address)) ?? { turn: null, turnNo: 0, parked: null };
  } catch (error) {
    if (error instanceof TroupeError && error.code === 'actor_corrupt') return null;
    throw error;
  }
}

export function endOf(end: Event | null): RetryFacts['ended'] {
  if (!end || !isAbout(end, 'turnEnd')) return null;
  switch (end.kind) {
    case 'turn.done':
      return 'done';
    case 'turn.failed':
      return 'failed';
    case 'turn.aborted':
      return 'aborted';
  }
}

/** Error code and inputs of the ended turn. A retry of a retry gets the inputs of the first turn. */
async function givenTo(
  store: EngineDeps['store'],
  log: ConversationKey,
  end: Event | null,
): Promise<{ code?: string; inputs: number[] }> {
  if (end?.kind !== 'turn.failed' && end?.kind !== 'turn.aborted') return { inputs: [] };
  const inputs = new Set<number>();
  for (const seq of end.body.covers) {
    const [event] = await store.read(log, { after: seq - 1, upTo: seq, limit: 1 });
    const before = event?.kind === 'command' ? (event.body.inputs ?? []) : [seq];
    for (const each of before) inputs.add(each);
  }
  const code = end.kind === 'turn.failed' ? { code: end.body.code } : {};
  return { ...code, inputs: [...inputs].toSorted((a, b) => a - b) };
}

function unknown(turn: string): TroupeError {
  return new TroupeError('turn_unknown', `there is no turn "${turn}"`, { turn });
}
