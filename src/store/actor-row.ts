import { TroupeError } from '../base/errors.ts';
import type { ActorAddress, ActorRecord as ActorRecordType, Unavailability, Timer } from '../events/index.ts';
import { ACTOR_VERSION, ActorRecord, newActorRecord } from '../events/index.ts';
import type { ActorChange, ActorRow } from './driver.ts';
import { reasonOf } from './event-row.ts';
import type { ActorPatch } from './store.ts';

/** `data` of a record without state. */
const NO_STATE = '{}';

/** The row that `acquire` or `park` creates. The driver then sets the requested fields. */
export function newActorRow(address: Pick<ActorRow, 'tenant' | 'conversation' | 'agent'>): ActorRow {
  const { tenant, conversation, agent } = address;
  const free = { fence: 0, owner: '', until: 0, processed: 0, turn: null, abort: null, parked: null };
  return { tenant, conversation, agent, ...free, outbox: false, wakeAt: null, data: NO_STATE };
}

/** An undefined key leaves its field unchanged, like an absent one. */
export function changedRow(row: ActorRow, change: ActorChange): ActorRow {
  return {
    tenant: row.tenant,
    conversation: row.conversation,
    agent: row.agent,
    fence: row.fence,
    owner: change.owner ?? row.owner,
    until: change.until ?? row.until,
    processed: change.processed ?? row.processed,
    turn: change.turn === undefined ? row.turn : change.turn,
    abort: change.abort === undefined ? row.abort : change.abort,
    parked: change.parked === undefined ? row.parked : change.parked,
    outbox: row.outbox,
    wakeAt: change.wakeAt === undefined ? row.wakeAt : change.wakeAt,
    data: change.data ?? row.data,
  };
}

/** Reason for refusing a record that this version may neither read nor write. */
const NEWER = 'it was written by a newer version of Troupe';

export function isNewer(unreadable: string): boolean {
  return unreadable === NEWER;
}

/** The record, or the reason why it cannot be read. */
export function decodeActor(address: ActorAddress, row: ActorRow): ActorRecordType | string {
  let state: unknown;
  try {
    state = row.data === NO_STATE ? newActorRecord(address) : JSON.parse(row.data);
  } catch (error) {
    return `its data is not JSON (${String(error)})`;
  }
  if (state === null || typeof state !== 'object') return 'its data is not an object';
  // Checked before the shape, because the first write of this version would drop the fields that a newer one added.
  if (versionOf(state) > ACTOR_VERSION) return NEWER;
  const { tenant, conversation, agent } = address;
  const { fence, owner, until, processed, abort, parked, outbox: unpublished } = row;
  const lease = { fence, owner, until, processed, abort, parked };
  const columns = { tenant, conversation, agent, ...lease, unpublished };
  const parsed = ActorRecord.safeParse({ ...state, ...columns });
  if (!parsed.success) return reasonOf(parsed.error);
  // Queries filter by the columns, so a record that differs from them would be run or skipped wrongly.
  if ((parsed.data.turn?.id ?? null) !== row.turn) return `its turn differs from the column (${row.turn})`;
  if (earliest(parsed.data.timers) !== row.wakeAt) return 'its timers differ from the column';
  return parsed.data;
}

export function decodeActorOrThrow(address: ActorAddress, row: ActorRow): ActorRecordType {
  const record = decodeActor(address, row);
  if (typeof record !== 'string') return record;
  const name = `${address.agent} in conversation ${address.conversation}`;
  if (isNewer(record)) {
    const message = `the state of ${name} is left unchanged: ${record} (this one supports version ${ACTOR_VERSION}). Upgrade this process.`;
    throw new TroupeError('actor_newer', message, { ...address, supported: ACTOR_VERSION });
  }
  throw new TroupeError('actor_corrupt', `the state of ${name} cannot be read: ${record}`, {
    ...address,
    reason: record,
  });
}

function versionOf(state: object): number {
  return 'machineVersion' in state && typeof state.machineVersion === 'number' ? state.machineVersion : 0;
}

function earliest(timers: readonly Timer[]): number | null {
  return timers.reduce<number | null>((first, { at }) => Math.min(first ?? at, at), null);
}

/** The change of the row that applies `patch` to `base`. */
export function encodePatch(base: ActorRecordType, patch: ActorPatch): ActorChange {
  const { state, ...columns } = patch;
  if (!state) return columns;
  const { turnNo, lastTurn, snapshot, machineVersion, session, cursor, ...work } = { ...base, ...state };
  const { turn, lost, timers, took } = work;
  const memory = { turnNo, lastTurn, snapshot, machineVersion, session, cursor };
  return {
    ...columns,
    turn: turn?.id ?? null,
    wakeAt: earliest(timers),
    data: JSON.stringify({ ...memory, turn, lost, timers, took }),
  };
}

/** The record after `patch`. Its columns come from the row, because other callers write them too. */
export function patchedRecord(base: ActorRecordType, patch: ActorPatch, row: ActorRow): ActorRecordType {
  const { fence, owner, until, processed, abort, parked, outbox: unpublished } = row;
  return {
    ...base,
    ...patch.state,
    fence,
    owner,
    until,
    processed,
    abort: abort as ActorRecordType['abort'],
    parked: parked as Unavailability | null,
    unpublished,
  };
}
