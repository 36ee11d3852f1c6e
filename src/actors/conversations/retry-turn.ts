import { TroupeError } from '../../errors.ts';
import {
  type ActorAddress,
  type ActorRecord,
  type Author,
  type Event,
  isImported,
  parseTurnId,
  runtimeId,
  turnId,
  type TurnId,
  isAbout,
} from '../../events/index.ts';
import type { Participants } from '../../machines/participants.ts';
import type { ConversationKey } from '../../store/store.ts';
import type { EngineDeps } from '../engine/engine-deps.ts';
import { appendFirst, type ConversationDeps } from './conversation-deps.ts';

/** What decides whether a turn may be asked for again. */
export interface RetryFacts {
  address: ActorAddress;
  turn: TurnId;
  /** What the log says of its end; null where it does not. */
  ended: 'done' | 'failed' | 'aborted' | null;
  /** Null where it cannot be read: then the agent is set aside, or will be. */
  record: Pick<ActorRecord, 'turn' | 'turnNo' | 'parked'> | null;
  participants: Pick<Participants, 'tasks' | 'retired'>;
}

/** `resume`: the agent was set aside with this turn unended, or after one that needs no retry. */
export type MayRetry = { kind: 'retry' } | { kind: 'resume' } | { kind: 'refused'; why: string };

export function mayRetry({ address, turn, ended, record, participants }: RetryFacts): MayRetry {
  const { agent, conversation } = address;
  const away = participants.tasks.away.get(agent);
  if (participants.tasks.directions.archived) return refused(`${conversation} is archived: reopen it first`);
  if (away) return refused(away.blocked ? `@${agent} is blocked: unblock it first` : `@${agent} has left`);
  if (participants.retired.has(agent) || record?.parked === 'retired')
    return refused(`@${agent} is retired: recall it first`);
  const wasWrong = ended === 'failed' || ended === 'aborted';
  if (!record) return { kind: wasWrong ? 'retry' : 'resume' };
  const newest = record.turn?.id ?? turnId(address, record.turnNo);
  const isOlder =
    newest !== turn && (record.turn !== null || (parseTurnId(turn)?.number ?? 0) < record.turnNo);
  if (isOlder) return refused(`a later turn came: ${newest}`);
  if (record.parked === 'failed') return { kind: wasWrong ? 'retry' : 'resume' };
  if (record.turn) return refused('it is running');
  if (ended === 'done') return refused('it is done');
  if (ended === null) return refused('it is just ending: try again');
  if (record.parked === 'paused') return refused(`@${agent} is paused: resume it first`);
  return { kind: 'retry' };
}

function refused(why: string): MayRetry {
  return { kind: 'refused', why };
}

/**
 * A person asks for a turn again. The event is one for all who ask at once, in whichever process, and so is the turn that
 * it wakes; who comes later gets it too. Throws `turn_unknown`, `command_refused`.
 *  R1  A retry stands behind the end of its turn, which has failed or was stopped, and addresses the agent of it alone.
 */
export async function retryTurn(
  door: ConversationDeps,
  tenant: ConversationKey['tenant'],
  turn: TurnId,
  by: Author,
): Promise<Event> {
  const { store, log, router } = door.deps;
  const parts = parseTurnId(turn);
  if (!parts) throw unknown(turn);
  const address = { tenant, conversation: parts.conversation, agent: parts.agent };
  const end = await store.readById(address, runtimeId(turn, 'end'));
  const record = await readRecord(store, address);
  if (!end && record?.turn?.id !== turn && !(await store.readById(address, runtimeId(turn, 'started'))))
    throw unknown(turn);
  if (!door.deps.agents.has(parts.agent))
    throw new TroupeError('agent_unknown', `there is no agent "${parts.agent}"`, { agent: parts.agent });
  const participants = await door.participantsCache.of(address);
  const ended = endOf(end);
  const may = mayRetry({ address, turn, ended, record, participants });
  const notice = participants.failedAt.get(parts.agent) ?? 0;
  const ids = [runtimeId(turn, 'retry'), runtimeId(turn, 'resume', notice)] as const;
  const isAside = !record || record.parked === 'failed';
  if (may.kind === 'refused' || !isAside) {
    for (const id of ids) {
      const known = await store.readById(address, id);
      if (!known || isImported(known)) continue;
      // Whoever wrote it may have come no further. A wake that is lost is the sweeper's.
      await router.wake(address).catch(() => undefined);
      return known;
    }
  }
  if (may.kind === 'refused') {
    const { agent, conversation } = address;
    throw new TroupeError('command_refused', `turn ${turn} is not taken again: ${may.why}`, {
      turn,
      agent,
      conversation,
    });
  }
  const event =
    may.kind === 'retry'
      ? await appendFirst({ log, store }, address, {
          id: ids[0],
          author: by,
          to: [parts.agent],
          kind: 'command',
          body: { command: 'retry', agent: parts.agent, turn, ...(await givenTo(store, address, end)) },
        })
      : await appendFirst({ log, store }, address, {
          id: ids[1],
          author: by,
          to: [],
          kind: 'command',
          body: { command: 'resume', agent: parts.agent, turn },
        });
  if (isAside) await door.engine.resume(address, 'RETRY');
  return event;
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

/** How it ended, and what it was to answer; of a turn that was a retry itself, what was asked for again. */
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
