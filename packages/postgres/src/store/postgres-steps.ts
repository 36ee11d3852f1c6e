import {
  type ActorChange,
  type ActorKey,
  type ActorRow,
  type ActorStep,
  chainRows,
  chainValue,
  conditionOf,
  type EventRow,
  type LogEnd,
  type NewEventRow,
  spareId,
  type StepAppend,
  type StepEvent,
  type StepOutcome,
  type WholeStepped,
  type WholeSteps,
} from '../troupe.ts';
import { type Database, prepared, type Queries, type Value } from './database.ts';
import { FACTS, KEY, planUpdate } from './postgres-tables.ts';
import { EVENT_COLUMNS, EVENT_NAMES, EVENT_TYPES, EVENT_VALUES, eventArrays } from './postgres-events.ts';
import { isDuplicateKey } from './postgres-error.ts';
import type { Tables } from './postgres-schema.ts';

/**
 * A step as one transaction.
 *  P1  Usually it is one statement. It appends to the actor's own log after the end that this process knows, and changes nothing
 *      if the log ends elsewhere.
 *  P2  Otherwise the transaction first locks the logs and reads their ends and the taken ids, then runs the statement.
 *  P3  Every append locks the row of its conversation first, and several rows in the order of their ids. So there are no
 *      deadlocks, and the next seq is never taken. The first event of a log creates the row before itself.
 *  P4  A transaction that locks both an actor and conversations locks the conversations first.
 */
const OF_LOG = 'tenant = $1 AND conversation = $2';

export function createSteps(database: Database, tables: Tables): WholeSteps {
  const logs = createLogLocks(tables);

  async function atOnce(
    key: ActorKey,
    step: ActorStep,
    known: LogEnd | undefined,
  ): Promise<WholeStepped | null | 'stale'> {
    const rows: NewEventRow[] = [];
    for (const { row } of step.events ?? []) {
      if (row.conversation !== key.conversation) return 'stale';
      rows.push(row);
    }
    if (rows.length > 0 && (known === undefined || known.seq === 0)) return 'stale';
    const end = rows.length > 0 && known ? known : null;
    const placed = end ? chainRows(rows, end) : [];
    try {
      const made = await writeStep(database, tables, { key, step, placed, end });
      if (made === 'stale' || made === null) return made;
      const appended = placed.map(({ seq, id }): StepAppend => ({ kind: 'appended', seq, id }));
      return { outcome: made, appended, placed };
    } catch (error) {
      if (isDuplicateKey(error)) return 'stale';
      throw error;
    }
  }

  return async (key, step, known) => {
    const made = await atOnce(key, step, known);
    if (made !== 'stale') return made;
    return database.transaction(async (queries) => {
      const events = step.events ?? [];
      const names = [...new Set(events.map(({ row }) => row.conversation))].toSorted();
      const ends = await logs.lock(queries, key.tenant, names);
      const { appended, placed } = await placeEvents(queries, logs, ends, events);
      const done = await writeStep(queries, tables, { key, step, placed, end: null });
      if (done && done !== 'stale') return { outcome: done, appended, placed };
      await logs.removeEmpty(queries, key.tenant, names);
      return null;
    });
  };
}

/** Gives events their seqs after the ends of locked logs. */
async function placeEvents(
  queries: Queries,
  logs: ReturnType<typeof createLogLocks>,
  ends: Map<string, LogEnd>,
  events: readonly StepEvent[],
): Promise<{ appended: StepAppend[]; placed: EventRow[] }> {
  const appended: StepAppend[] = [];
  const placed: EventRow[] = [];

  async function place({ row, ifTaken }: StepEvent): Promise<StepAppend> {
    for (let number = 1; ; number += 1) {
      const id = number === 1 ? row.id : spareId(row.id, number);
      const there =
        placed.find((each) => each.id === id && each.conversation === row.conversation) ??
        (await logs.find(queries, row, id));
      if (!there) {
        const end = ends.get(row.conversation)!;
        const seq = end.seq + 1;
        const chain = chainValue({ ...row, id }, seq, end.chain);
        ends.set(row.conversation, { seq, chain });
        placed.push({ ...row, id, seq, chain });
        return { kind: 'appended', seq, id };
      }
      if (there.hash === row.hash) return { kind: 'there', seq: there.seq, id };
      if (ifTaken === 'drop') return { kind: 'taken' };
    }
  }

  for (const event of events) appended.push(await place(event));
  return { appended, placed };
}

function createLogLocks({ conversations, events }: Tables) {
  // The update locks existing rows in the order of their ids. A row that is removed meanwhile is created again.
  const lock = prepared(
    `INSERT INTO ${conversations} AS old (tenant, conversation, head, at)
     SELECT $1, name, 0, 0 FROM unnest($2::text[]) AS names (name)
     ON CONFLICT (tenant, conversation) DO UPDATE SET head = old.head`,
  );
  const selectEnd = prepared(
    `SELECT seq, chain FROM ${events} WHERE tenant = $1 AND conversation = $2 ORDER BY seq DESC LIMIT 1`,
  );
  const removeEmpty = prepared(
    `DELETE FROM ${conversations} WHERE tenant = $1 AND conversation = ANY ($2::text[]) AND head = 0`,
  );
  const selectId = prepared(
    `SELECT seq, hash FROM ${events} WHERE tenant = $1 AND conversation = $2 AND id = $3`,
  );

  return {
    /** Locks the logs and returns their ends, which do not change before the transaction ends. */
    async lock(queries: Queries, tenant: string, names: readonly string[]): Promise<Map<string, LogEnd>> {
      await queries.run(lock, [tenant, names]);
      const ends = new Map<string, LogEnd>();
      for (const name of names) {
        const [end] = await queries.rows<LogEnd>(selectEnd, [tenant, name]);
        ends.set(name, end ?? { seq: 0, chain: null });
      }
      return ends;
    },
    async removeEmpty(queries: Queries, tenant: string, names: readonly string[]): Promise<void> {
      await queries.run(removeEmpty, [tenant, names]);
    },
    async find(queries: Queries, { tenant, conversation }: NewEventRow, id: string) {
      const [row] = await queries.rows<{ seq: number; hash: string }>(selectId, [tenant, conversation, id]);
      return row;
    },
  };
}

interface Asked {
  key: ActorKey;
  step: ActorStep;
  /** The events with their seqs, in order per log. */
  placed: readonly EventRow[];
  /** The end that the actor's own log must have. Null: the logs are locked. */
  end: LogEnd | null;
}

/** Runs the statement. Null: an expectation did not hold. `stale`: the log ends elsewhere. */
async function writeStep(
  queries: Queries,
  tables: Tables,
  asked: Asked,
): Promise<StepOutcome | null | 'stale'> {
  const { values, text } = planStep(tables, asked);
  const [found] = await queries.rows<
    ActorRow & { isCurrent: boolean; isAddressed: boolean; agent: string | null }
  >(prepared(text), values);
  if (!found?.isCurrent) return 'stale';
  if (found.agent === null) return null;
  const { isCurrent: _, isAddressed, ...row } = found;
  return { row: { ...row, data: asked.step.change.data ?? row.data }, isAddressed };
}

/** Builds the statement of a step. There are few different texts, so the statements can be named. */
function planStep(tables: Tables, { key, step, placed, end }: Asked): { values: Value[]; text: string } {
  const { change, takes, entries = [], rests } = step;
  const { values, sets, conditions } = planUpdate(
    key,
    conditionOf(step),
    rests ? withoutLease(change) : change,
  );
  const bind = (value: Value) => `$${values.push(value)}`;
  const own = placed.filter(({ conversation }) => conversation === key.conversation);
  const last = own.at(-1)?.seq ?? null;
  const isOwnAddressed = own.some(({ to }) => to.includes(key.agent));
  const parts = [
    ...(end ? freshIf(tables, end, bind) : ['fresh AS (SELECT 1 AS one)']),
    rests
      ? lookAfter(tables, { after: change.processed, isOwnAddressed }, bind)
      : 'look AS (SELECT false AS "isAddressed")',
  ];
  if (rests) sets.push(...restingSets(change, last, bind));
  if (takes) sets.push('fence = fence + 1');
  // The server does not send back data that was just written.
  const data = change.data === undefined ? ', data' : '';
  parts.push(
    `actor AS (UPDATE ${tables.actors} SET ${sets.join(', ') || 'fence = fence'} FROM fresh, look
       WHERE ${conditions.join(' AND ')} RETURNING ${KEY}, ${FACTS}${data})`,
  );
  if (entries.length > 0) parts.push(keptEntries(tables, entries, bind));
  if (placed.length > 0) parts.push(...addedEvents(tables, placed, bind));
  const text = `WITH ${parts.join(', ')}
    SELECT EXISTS (SELECT FROM fresh) AS "isCurrent", "isAddressed", actor.* FROM look LEFT JOIN actor ON true`;
  return { values, text };
}

type Bind = (value: Value) => string;

/** Locks the row of the conversation, and checks that the log ends where expected (P1, P3). */
function freshIf({ conversations, events }: Tables, { seq, chain }: LogEnd, bind: Bind): string[] {
  const head = bind(seq);
  return [
    `locked AS (SELECT head FROM ${conversations} WHERE ${OF_LOG} FOR UPDATE)`,
    `fresh AS (SELECT 1 AS one FROM locked WHERE head = ${head} AND
       (SELECT chain FROM ${events} WHERE ${OF_LOG} AND seq = ${head}) IS NOT DISTINCT FROM ${bind(chain)}::text)`,
  ];
}

/** SQL for whether an unprocessed event addresses the actor. */
function lookAfter(
  { actors, events }: Tables,
  { after, isOwnAddressed }: { after: number | undefined; isOwnAddressed: boolean },
  bind: Bind,
): string {
  const processed =
    after === undefined ? `(SELECT processed FROM ${actors} WHERE ${OF_LOG} AND agent = $3)` : bind(after);
  return `look AS (SELECT ${bind(isOwnAddressed)}::boolean OR EXISTS (SELECT 1 FROM ${events}
    WHERE ${OF_LOG} AND seq > ${processed} AND addressed AND $3 = ANY (recipients)) AS "isAddressed")`;
}

function withoutLease({
  owner: _owner,
  until: _until,
  processed: _processed,
  ...change
}: ActorChange): ActorChange {
  return change;
}

/** SQL that releases the lease unless an event addresses the actor. `last`: seq of the step's last event in the actor's log. */
function restingSets({ owner, until, processed }: ActorChange, last: number | null, bind: Bind): string[] {
  const changed = (column: string, value: Value | undefined, type: string) =>
    value === undefined ? column : `${bind(value)}::${type}`;
  const upTo = changed('processed', processed, 'bigint');
  return [
    `owner = CASE WHEN "isAddressed" THEN ${changed('owner', owner, 'text')} ELSE '' END`,
    `until = CASE WHEN "isAddressed" THEN ${changed('until', until, 'bigint')} ELSE 0 END`,
    `processed = CASE WHEN "isAddressed" THEN ${upTo} ELSE greatest(${upTo}, ${bind(last)}::bigint) END`,
  ];
}

const IF_CHANGED = 'WHERE EXISTS (SELECT FROM actor)';

function keptEntries({ entries }: Tables, puts: NonNullable<ActorStep['entries']>, bind: Bind): string {
  const of = (column: (put: (typeof puts)[number]) => string | number) => bind(puts.map(column));
  return `kept AS (INSERT INTO ${entries} (tenant, namespace, key, at, data)
    SELECT * FROM unnest(${of(({ key }) => key.tenant)}::text[], ${of(({ key }) => key.namespace)}::text[],
      ${of(({ key }) => key.key)}::text[], ${of(({ at }) => at)}::bigint[], ${of(({ data }) => data)}::text[]) AS new
    ${IF_CHANGED} ON CONFLICT DO NOTHING)`;
}

function addedEvents({ events, conversations }: Tables, placed: readonly EventRow[], bind: Bind): string[] {
  const ends = [...new Map(placed.map((row) => [row.conversation, row])).values()];
  const names = bind(placed.map(({ conversation }) => conversation));
  const arrays = eventArrays(placed).map((values, index) => `${bind(values)}::${EVENT_TYPES[index]}[]`);
  return [
    `added AS (INSERT INTO ${events} (tenant, conversation, ${EVENT_COLUMNS})
       SELECT $1, new.conversation, ${EVENT_VALUES}
       FROM unnest(${names}::text[], ${arrays.join(', ')}) AS new (conversation, ${EVENT_NAMES}) ${IF_CHANGED})`,
    `listed AS (UPDATE ${conversations} AS old SET head = new.head, at = new.at
       FROM unnest(${bind(ends.map(({ conversation }) => conversation))}::text[], ${bind(ends.map(({ seq }) => seq))}::bigint[],
         ${bind(ends.map(({ at }) => at))}::bigint[]) AS new (conversation, head, at)
       WHERE old.tenant = $1 AND old.conversation = new.conversation AND EXISTS (SELECT FROM actor))`,
  ];
}
