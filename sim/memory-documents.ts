import { changedRow } from '../src/store/actor-row.ts';
import {
  type ActorKey,
  type ActorRow,
  type ConversationPage,
  type ConversationsQuery,
  type EventRow,
  pageOf,
} from '../src/store/driver.ts';
import type {
  ActorCondition,
  Addressee,
  DocumentChange,
  Documents,
  LogEnd,
  LogKey,
} from '../src/store/documents/documents.ts';
import { createMemoryStandings } from './memory-standings.ts';
import { createMemoryPassages } from './memory-passages.ts';
import type { Passage } from '../src/store/passages.ts';
import type { NewStanding } from '../src/store/standings.ts';

/**
 * The documents in memory, for simulations, tests and benchmarks. Every write is one step by construction.
 *
 * Owns the rows, which are never changed in place: a returned row stays as it is.
 *  E1  `bySeq` and `byId` of a log have the same rows; `last` is the highest seq.
 *  E2  `addressed` of a log has, per agent, the rows that address it, by seq.
 *  E3  An operation awaits nothing, so it happens at one moment, with or without a gate.
 */
export interface MemoryData {
  logs: Map<string, MemoryLog>;
  actors: Map<string, ActorRow>;
  entries: Map<string, { namespace: string; data: string; at: number }>;
}

export interface MemoryLog extends LogKey {
  byId: Map<string, EventRow>;
  bySeq: Map<number, EventRow>;
  addressed: Map<string, EventRow[]>;
  last: number;
  standing?: NewStanding;
  passages?: Map<number, Passage>;
}

/** The name of an operation on one document; `insert` of several events is several operations. */
export type DocumentOp =
  | `events.${Exclude<keyof Documents['events'], symbol>}`
  | `actors.${Exclude<keyof Documents['actors'], symbol>}`
  | `entries.${Exclude<keyof Documents['entries'], symbol>}`
  | `standings.${Exclude<keyof Documents['standings'], symbol>}`
  | `passages.${Exclude<keyof Documents['passages'], symbol>}`;

/** Decides when an operation happens and what its caller receives; must call `work` at most once. */
export type DocumentGate = <T>(op: DocumentOp, work: () => T) => Promise<T>;

export interface MemoryDocumentsOptions {
  /** Shared by the processes of one cluster. Default: new and empty. */
  data?: MemoryData;
  gate?: DocumentGate;
}

const atOnce: DocumentGate = (_, work) => {
  try {
    return Promise.resolve(work());
  } catch (error) {
    return Promise.reject(error as Error);
  }
};

export function newMemoryData(): MemoryData {
  return { logs: new Map(), actors: new Map(), entries: new Map() };
}

export function createMemoryDocuments(options: MemoryDocumentsOptions = {}): Documents {
  const { data = newMemoryData(), gate = atOnce } = options;
  const { logs, actors, entries } = data;

  return {
    events: createMemoryEvents(logs, gate),
    actors: createMemoryActors(actors, gate),
    entries: createMemoryEntries(entries, gate),
    standings: createMemoryStandings(logs, gate),
    passages: createMemoryPassages(logs, gate),
    scrub: () => Promise.resolve([]),
    close: () => Promise.resolve(),
  };
}

function createMemoryEvents(logs: MemoryData['logs'], gate: DocumentGate): Documents['events'] {
  return {
    async insert(rows) {
      for (const [index, row] of rows.entries()) {
        const inserted = await gate('events.insert', () => insertEvent(logs, row));
        if (!inserted) return index;
      }
      return rows.length;
    },
    find: (log, id) => gate('events.find', () => logs.get(logKey(log))?.byId.get(id) ?? null),
    keys: (log, range) =>
      gate('events.keys', () => rangeOf(logs.get(logKey(log)), { ...range, limit: Number.MAX_SAFE_INTEGER })),
    last: (log) => gate('events.last', () => endOf(logs.get(logKey(log)))),
    unchain: (log, id) => gate('events.unchain', () => change(logs.get(logKey(log)), id, { chain: null })),
    range: (log, range) => gate('events.range', () => rangeOf(logs.get(logKey(log)), range)),
    addressed: (key, { after, upTo }) =>
      gate('events.addressed', () => {
        const rows = logs.get(logKey(key))?.addressed.get(key.agent) ?? [];
        return rows.map(({ seq }) => seq).filter((seq) => seq > after && seq <= upTo);
      }),
    visitAddressees: async (since, visit) =>
      visit(
        await gate('events.visitAddressees', () =>
          [...addresseesOf(logs, since)].toSorted((a, b) => a.at - b.at),
        ),
      ),
    replaceData: async (log, rows) => {
      for (const { id, data } of rows)
        await gate('events.replaceData', () => change(logs.get(logKey(log)), id, { data }));
    },
    unaddress: (log) => gate('events.unaddress', () => unaddress(logs.get(logKey(log)))),
    removeNewest: async (log, { after, limit }) => {
      let removed = 0;
      while (removed < limit && (await gate('events.removeNewest', () => removeNewest(logs, log, after))))
        removed += 1;
      return removed;
    },
    conversations: (query) => gate('events.conversations', () => listed(logs, query)),
  };
}

function createMemoryActors(actors: MemoryData['actors'], gate: DocumentGate): Documents['actors'] {
  return {
    insert: (row) =>
      gate('actors.insert', () => {
        const key = actorKey(row);
        if (actors.has(key)) return false;
        actors.set(key, { ...row });
        return true;
      }),
    find: (key) => gate('actors.find', () => actors.get(actorKey(key)) ?? null),
    findMany: (keys) =>
      gate('actors.findMany', () =>
        keys.flatMap((key) => {
          const row = actors.get(actorKey(key));
          return row ? [withoutData(row)] : [];
        }),
      ),
    list: (log) => gate('actors.list', () => crewOf(actors, log)),
    update: (key, condition, change) =>
      gate('actors.update', () => {
        const row = actors.get(actorKey(key));
        if (!row || !holds(row, condition)) return null;
        const next = changed(row, change);
        actors.set(actorKey(key), next);
        return next;
      }),
    unfinished: (query) => gate('actors.unfinished', () => unfinishedOf(actors, query)),
    remove: async (log) => {
      let removed = 0;
      for (const row of await gate('actors.list', () => crewOf(actors, log)))
        if (await gate('actors.remove', () => actors.delete(actorKey(row)))) removed += 1;
      return removed;
    },
  };
}

function createMemoryEntries(entries: MemoryData['entries'], gate: DocumentGate): Documents['entries'] {
  return {
    insert: ({ tenant, namespace, key }, text, at) =>
      gate('entries.insert', () => {
        const name = entryName(tenant, namespace, key);
        if (entries.has(name)) return false;
        entries.set(name, { namespace, data: text, at });
        return true;
      }),
    find: ({ tenant, namespace, key }) =>
      gate('entries.find', () => entries.get(entryName(tenant, namespace, key))?.data ?? null),
    findMany: (keys) =>
      gate('entries.findMany', () =>
        keys.map(
          ({ tenant, namespace, key }) => entries.get(entryName(tenant, namespace, key))?.data ?? null,
        ),
      ),
    replace: ({ tenant, namespace, key }, from, to) =>
      gate('entries.replace', () => {
        const name = entryName(tenant, namespace, key);
        const stored = entries.get(name);
        if (!stored || stored.data !== from) return false;
        entries.set(name, { ...stored, data: to });
        return true;
      }),
    removeBefore: (namespace, before, limit) =>
      gate('entries.removeBefore', () => {
        let removed = 0;
        for (const [name, stored] of entries) {
          if (removed >= limit) break;
          if (stored.namespace === namespace && stored.at < before && entries.delete(name)) removed += 1;
        }
        return removed;
      }),
    keysBetween: ({ tenant, namespace, after, before, limit }) =>
      gate('entries.keysBetween', () => {
        const prefix = entryName(tenant, namespace, '');
        return [...entries.keys()]
          .flatMap((name) => (name.startsWith(prefix) ? [name.slice(prefix.length)] : []))
          .filter((key) => key > after && key < before)
          .sort()
          .slice(0, limit);
      }),
    async remove(keys) {
      for (const { tenant, namespace, key } of keys)
        await gate('entries.remove', () => entries.delete(entryName(tenant, namespace, key)));
    },
  };
}

/** Ids contain no `/`, so that joined keys are unambiguous; the last part may be any text. */
function logKey({ tenant, conversation }: LogKey): string {
  return `${tenant}/${conversation}`;
}

function actorKey({ tenant, conversation, agent }: ActorKey): string {
  return `${tenant}/${conversation}/${agent}`;
}

function entryName(tenant: string, namespace: string, key: string): string {
  return `${tenant}/${namespace}/${key}`;
}

function insertEvent(logs: Map<string, MemoryLog>, row: EventRow): boolean {
  const key = logKey(row);
  let log = logs.get(key);
  if (!log) {
    const { tenant, conversation } = row;
    log = { tenant, conversation, byId: new Map(), bySeq: new Map(), addressed: new Map(), last: 0 };
    logs.set(key, log);
  }
  if (log.byId.has(row.id) || log.bySeq.has(row.seq)) return false;
  const stored = { ...row };
  log.byId.set(row.id, stored);
  log.bySeq.set(row.seq, stored);
  for (const agent of new Set(row.to)) {
    const rows = log.addressed.get(agent) ?? [];
    log.addressed.set(agent, rows);
    rows.push(stored);
    if (row.seq < log.last) rows.sort((a, b) => a.seq - b.seq);
  }
  log.last = Math.max(log.last, row.seq);
  return true;
}

function endOf(log: MemoryLog | undefined): LogEnd {
  const newest = log?.bySeq.get(log.last);
  return newest ? { seq: newest.seq, chain: newest.chain } : { seq: 0, chain: null };
}

function change(log: MemoryLog | undefined, id: string, to: Partial<EventRow>): void {
  const row = log?.byId.get(id);
  if (!log || !row) return;
  const changed = { ...row, ...to };
  log.byId.set(id, changed);
  log.bySeq.set(row.seq, changed);
  for (const rows of log.addressed.values()) {
    const at = rows.indexOf(row);
    if (at >= 0) rows[at] = changed;
  }
}

function unaddress(log: MemoryLog | undefined): void {
  log?.addressed.clear();
}

/** False if there is no event after `after`. Removes a log without events. */
function removeNewest(logs: Map<string, MemoryLog>, key: LogKey, after: number): boolean {
  const log = logs.get(logKey(key));
  const newest = log?.bySeq.get(log.last);
  if (!log || !newest || newest.seq <= after) return false;
  log.bySeq.delete(newest.seq);
  log.byId.delete(newest.id);
  for (const [agent, rows] of log.addressed)
    log.addressed.set(
      agent,
      rows.filter((row) => row !== newest),
    );
  log.last = Math.max(0, ...log.bySeq.keys());
  if (log.last === 0) logs.delete(logKey(key));
  return true;
}

function rangeOf(
  log: MemoryLog | undefined,
  { after, upTo, limit, maxBytes }: Parameters<Documents['events']['range']>[1],
): EventRow[] {
  const rows: EventRow[] = [];
  if (!log) return rows;
  const end = Math.min(upTo, log.last);
  let bytes = 0;
  for (let seq = after + 1; seq <= end && rows.length < limit; seq++) {
    const row = log.bySeq.get(seq);
    if (!row) continue;
    rows.push(row);
    if (maxBytes !== undefined) bytes += Buffer.byteLength(row.data);
    if (maxBytes !== undefined && bytes >= maxBytes) break;
  }
  return rows;
}

function* addresseesOf(logs: Map<string, MemoryLog>, since: number): Generator<Addressee> {
  for (const { tenant, conversation, addressed } of logs.values()) {
    for (const [agent, all] of addressed) {
      const rows = all.filter(({ at }) => at >= since);
      const last = rows.at(-1);
      if (!last) continue;
      const at = rows.reduce((oldest, row) => Math.min(oldest, row.at), last.at);
      yield { tenant, conversation, agent, seq: last.seq, at };
    }
  }
}

function listed(
  logs: Map<string, MemoryLog>,
  { tenant, limit, before, ranges }: ConversationsQuery,
): ConversationPage {
  const isIn = (id: string) => !ranges || ranges.some(({ from, to }) => id >= from && id < to);
  const all = [...logs.values()]
    .filter((log) => log.tenant === tenant && isIn(log.conversation))
    .map(({ conversation, bySeq, last }) => ({
      id: conversation,
      head: last,
      at: bySeq.get(last)?.at ?? 0,
    }));
  return pageOf(all, { limit, before });
}

function crewOf(actors: Map<string, ActorRow>, { tenant, conversation }: LogKey): ActorRow[] {
  return [...actors.values()]
    .filter((row) => row.tenant === tenant && row.conversation === conversation)
    .sort((a, b) => (a.agent < b.agent ? -1 : 1));
}

function withoutData(row: ActorRow): Omit<ActorRow, 'data'> {
  const { data: _, ...columns } = row;
  return columns;
}

function holds(
  row: ActorRow,
  { fence, turn, notAborted, freeAt, parked, outbox, processed }: ActorCondition,
): boolean {
  if (fence !== undefined && row.fence !== fence) return false;
  if (turn !== undefined && row.turn !== turn) return false;
  if (notAborted && row.turn !== null && row.abort === row.turn) return false;
  if (parked !== undefined && row.parked !== parked) return false;
  if (outbox !== undefined && row.outbox !== outbox) return false;
  if (processed !== undefined && row.processed !== processed) return false;
  return freeAt === undefined || row.until < freeAt;
}

function changed(row: ActorRow, { raiseFence, outbox, ...change }: DocumentChange): ActorRow {
  const next = changedRow(row, change);
  if (outbox !== undefined) next.outbox = outbox;
  if (raiseFence) next.fence += 1;
  return next;
}

function unfinishedOf(
  actors: Map<string, ActorRow>,
  { now, clock, limit }: { now: number; clock: number; limit: number },
): ActorKey[] {
  const found: ActorKey[] = [];
  for (const { tenant, conversation, agent, turn, outbox, wakeAt, parked, until } of actors.values()) {
    if (found.length >= limit) break;
    const isTime = wakeAt !== null && wakeAt <= clock;
    if ((turn !== null || outbox || isTime) && parked === null && until < now)
      found.push({ tenant, conversation, agent });
  }
  return found;
}
