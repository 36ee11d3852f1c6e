import { type UpdateFilter } from 'mongodb';
import type { ActorKey, ActorRow } from '../driver.ts';
import type { DocumentChange } from '../documents/documents.ts';
import { type BlobRef, type Held, type StoredText } from './mongo-blobs.ts';

/** `_id` is tenant/conversation/agent. Null and false are stored as absent fields, which sparse indexes leave out. */
export interface ActorDoc {
  _id: string;
  fence: number;
  owner: string;
  until: number;
  processed: number;
  turn?: string;
  abort?: string;
  parked?: string;
  outbox?: true;
  wakeAt?: number;
  data?: StoredText;
  blob?: BlobRef;
}

const NULLABLE = ['turn', 'abort', 'parked'] as const;
const ABSENT_IF_NULL = [...NULLABLE, 'wakeAt'] as const;
const PLAIN = ['owner', 'until', 'processed'] as const;

export function idOf({ tenant, conversation, agent }: ActorKey): string {
  return `${tenant}/${conversation}/${agent}`;
}

/** Null for an id that Troupe did not write. */
export function keyFromId(id: unknown): ActorKey | null {
  const [tenant, conversation, agent, ...rest] = typeof id === 'string' ? id.split('/') : [];
  return tenant && conversation && agent && rest.length === 0 ? { tenant, conversation, agent } : null;
}

export function docOf(row: ActorRow, held: Held): ActorDoc {
  const { fence, owner, until, processed, turn, abort, parked, outbox, wakeAt } = row;
  const doc: ActorDoc = { _id: idOf(row), fence, owner, until, processed, ...held };
  if (turn !== null) doc.turn = turn;
  if (abort !== null) doc.abort = abort;
  if (parked !== null) doc.parked = parked;
  if (outbox) doc.outbox = true;
  if (wakeAt !== null) doc.wakeAt = wakeAt;
  return doc;
}

/** Empty without changes; an undefined key leaves its field unchanged. */
export function updateOf(change: DocumentChange, held: Held | null): UpdateFilter<ActorDoc> {
  const set: Record<string, unknown> = { ...held };
  const unset: Record<string, ''> = {};
  if (held) unset['blob' in held ? 'data' : 'blob'] = '';
  for (const name of PLAIN) if (change[name] !== undefined) set[name] = change[name];
  for (const name of ABSENT_IF_NULL) {
    if (change[name] === null) unset[name] = '';
    else if (change[name] !== undefined) set[name] = change[name];
  }
  if (change.outbox === true) set['outbox'] = true;
  if (change.outbox === false) unset['outbox'] = '';
  return {
    ...(Object.keys(set).length > 0 ? { $set: set } : {}),
    ...(Object.keys(unset).length > 0 ? { $unset: unset } : {}),
    ...(change.raiseFence ? { $inc: { fence: 1 } } : {}),
  } as UpdateFilter<ActorDoc>;
}

/** The damage of a document, or null. Its data is checked when it is decoded. */
export function damageOf(doc: ActorDoc): string | null {
  const fields = doc as unknown as Record<string, unknown>;
  for (const name of ['fence', 'until', 'processed']) {
    if (typeof fields[name] !== 'number') return `its ${name} is not a number`;
  }
  if (typeof fields['owner'] !== 'string') return 'its owner is not a string';
  for (const name of NULLABLE) {
    const value = fields[name];
    if (value !== undefined && value !== null && typeof value !== 'string')
      return `its ${name} is not a string`;
  }
  const { outbox, wakeAt } = fields;
  if (wakeAt !== undefined && wakeAt !== null && typeof wakeAt !== 'number')
    return 'its wakeAt is not a number';
  return outbox === undefined || outbox === null || typeof outbox === 'boolean'
    ? null
    : 'its outbox is not a boolean';
}

/** All fields but the data. A damaged field gets a value that keeps the actor due, so that the damage is found. */
export function columnsOf({ tenant, conversation, agent }: ActorKey, doc: ActorDoc): Omit<ActorRow, 'data'> {
  const fields = doc as unknown as Record<string, unknown>;
  const number = (name: string) => (typeof fields[name] === 'number' ? fields[name] : 0);
  const text = (name: string) => {
    const value = fields[name];
    return value === undefined || value === null ? null : typeof value === 'string' ? value : 'damaged';
  };
  return {
    tenant,
    conversation,
    agent,
    fence: number('fence'),
    owner: text('owner') ?? '',
    until: number('until'),
    processed: number('processed'),
    turn: text('turn'),
    abort: text('abort'),
    parked: text('parked'),
    outbox: fields['outbox'] === true,
    wakeAt: fields['wakeAt'] === undefined || fields['wakeAt'] === null ? null : number('wakeAt'),
  };
}
