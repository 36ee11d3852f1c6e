import { type ActorAddress, familyOf, type QueueDepth, type TenantId, type WaitingWake } from '../troupe.ts';
import { type QueueDatabase, queueTablesOf, NOW, prepared } from './queue-database.ts';

/** A wake that this process holds. */
export interface HeldWake {
  /** Changes each time the wake waits again, so that an earlier holder cannot change it. */
  id: number;
  address: ActorAddress;
  /** When the actor was woken, ms since the epoch. */
  since: number;
}

/** How a held wake ends. `waitMs`: it is served again after this time, with `isBegun` before others; null: it is done. */
export interface EndedWake {
  id: number;
  waitMs: number | null;
  isBegun: boolean;
}

/** `lapsed`: wakes of dead holders exist. `dueInMs`: when the next wake is due, 0 or less for now. */
interface WakeNeeds {
  lapsed: boolean;
  dueInMs: number | null;
}

/** The queue, as rows of one table; see `queue-database.ts` for the columns. */
export class WakeTable {
  readonly #database: QueueDatabase;
  readonly #channel: string;
  readonly #statements: WakeStatements;

  constructor(database: QueueDatabase, channel: string) {
    this.#database = database;
    this.#channel = channel;
    this.#statements = wakeStatements(queueTablesOf(database.schema).wakes);
  }

  /** Adds a wake for each actor; no actor may occur twice. Sends `hint` as a notification if a worker may be needed. */
  async add(addresses: readonly ActorAddress[], hint: string): Promise<void> {
    await this.#database.rows(this.#statements.add, [...columnsOf(addresses), this.#channel, hint]);
  }

  async addTimed(address: ActorAddress, delayMs: number, hint: string): Promise<void> {
    const values = [...columnsOf([address]), this.#channel, hint, delayMs];
    await this.#database.rows(this.#statements.addTimed, values);
  }

  /** Takes the next wakes, in their order. */
  async take(holder: string, most: number, lockMs: number): Promise<HeldWake[]> {
    const { take } = this.#statements;
    const taken = await this.#database.rows<Row & { rank: number }>(take, [holder, most, lockMs]);
    return taken
      .toSorted((a, b) => a.rank - b.rank || a.id - b.id)
      .map((row) => ({ id: row.id, address: addressOf(row), since: row.since }));
  }

  /** Ends held wakes. Returns how many of them wait again immediately, because their actors were woken meanwhile. */
  async end(holder: string, ended: readonly EndedWake[]): Promise<number> {
    const again = await this.#database.rows(this.#statements.end, [
      holder,
      ended.map(({ id }) => id),
      ended.map(({ waitMs }) => waitMs),
      ended.map(({ isBegun }) => (isBegun ? 1 : 0)),
    ]);
    return again.length;
  }

  /** Puts held wakes back as they were. */
  async putBack(holder: string): Promise<void> {
    await this.#database.rows(this.#statements.putBack, [holder]);
  }

  async renew(holder: string, lockMs: number): Promise<void> {
    await this.#database.rows(this.#statements.renew, [holder, lockMs]);
  }

  async needs(): Promise<WakeNeeds> {
    const [found] = await this.#database.rows<WakeNeeds>(this.#statements.needs);
    return found ?? { lapsed: false, dueInMs: null };
  }

  /** Lets due wakes wait for a worker, at most `STEP` of each kind. Returns whether there may be more. */
  async promote(): Promise<boolean> {
    const timed = await this.#database.rows(this.#statements.promoteTimed);
    const heldBack = await this.#database.rows(this.#statements.promoteHeldBack);
    return timed.length === STEP || heldBack.length === STEP;
  }

  /** Lets wakes of dead holders wait again. Returns their actors. */
  async free(): Promise<ActorAddress[]> {
    return (await this.#database.rows<Row>(this.#statements.free)).map(addressOf);
  }

  async depth(): Promise<QueueDepth> {
    const [depth] = await this.#database.rows<QueueDepth>(this.#statements.depth);
    return depth ?? { waiting: 0, active: 0, delayed: 0 };
  }

  /** Number of waiting actors of a tenant. Counts to `most` only, which bounds the cost for a long queue. */
  async backlog(tenant: TenantId, most: number): Promise<number> {
    const [found] = await this.#database.rows<{ size: number }>(this.#statements.backlog, [tenant, most]);
    return found?.size ?? 0;
  }

  /** Waiting wakes, the longest waiting first. If there are more than `limit`, those that are served next. */
  async waiting(limit: number, tenant: TenantId | null): Promise<WaitingWake[]> {
    const { waiting } = this.#statements;
    const found = await this.#database.rows<Row & { held: boolean }>(waiting, [limit, tenant]);
    return found
      .map((row) => ({ address: addressOf(row), since: row.since, isHeldBack: row.held }))
      .toSorted((a, b) => a.since - b.since)
      .slice(0, limit);
  }
}

function columnsOf(addresses: readonly ActorAddress[]) {
  return [
    addresses.map(({ tenant }) => tenant),
    addresses.map(({ conversation }) => conversation),
    addresses.map(({ agent }) => agent),
    addresses.map(({ conversation }) => familyOf(conversation)),
  ];
}

interface Row extends ActorAddress {
  id: number;
  since: number;
}

function addressOf({ tenant, conversation, agent }: Row): ActorAddress {
  return { tenant, conversation, agent };
}

/** Wakes that one statement moves. The rest follows in further statements, because ranks depend on wakes moved before. */
const STEP = 64;

const WAITS = 'due IS NULL AND holder IS NULL';
const ACTOR = 'tenant, conversation, agent';
const GIVEN = 'unnest($1::text[], $2::text[], $3::text[], $4::text[])';

type WakeStatements = ReturnType<typeof wakeStatements>;

/**
 * The statements of the queue. To avoid deadlocks, each locks rows in the order of their actors, or skips locked rows with
 * `SKIP LOCKED`.
 */
function wakeStatements(wakes: string) {
  return { ...adding(wakes), ...serving(wakes), ...moving(wakes), ...reading(wakes) };
}

/** SQL for ranks. `first`: the rank that is served next. `ofFronts`, `ofFamily`: the last rank in a group, or null. */
function ranksIn(wakes: string) {
  const last = (group: string) => `(SELECT max(rank) FROM ${wakes} AS other WHERE ${WAITS} AND ${group})`;
  const first = `(SELECT coalesce(min(rank), 0) FROM ${wakes} WHERE ${WAITS})`;
  const ofFronts = (row: string) => last(`front AND other.tenant = ${row}.tenant`);
  const ofFamily = (row: string) => last(`other.tenant = ${row}.tenant AND other.family = ${row}.family`);
  /** Rank of a wake that waits again: after the waiting wakes of its groups, and after its own previous rank. */
  const again = `greatest(${ofFamily('known')} + 1, ${ofFronts('known')} + 1, ${first}, known.rank + 1)`;
  return { first, ofFronts, ofFamily, again };
}

/**
 * Adds a wake for each row of `given`. Tenants take turns, and so do the families of a tenant: the first wake of a family
 * ranks after the first wakes of the tenant's other families, each further one after its predecessor. If the actor already
 * has a waiting wake, nothing is added. If its wake is held, that one is served again afterwards.
 */
function addAll(wakes: string, given: string): string {
  const { first, ofFronts, ofFamily } = ranksIn(wakes);
  return `
  given AS (${given}), base AS (SELECT ${first} AS rank), counted AS (
    SELECT given.*, row_number() OVER (PARTITION BY tenant, family ORDER BY nr) - 1 AS nth,
      ${ofFamily('given')} AS own, ${ofFronts('given')} AS fronts
    FROM given
  ), fronted AS (
    SELECT counted.*, own IS NULL AND nth = 0 AS front, coalesce(fronts + 1, base.rank) - 1
      + count(*) FILTER (WHERE own IS NULL AND nth = 0) OVER (PARTITION BY tenant ORDER BY nr) AS place, base.rank AS base
    FROM counted, base
  ), placed AS (
    SELECT fronted.*, nth + coalesce(own + 1, first_value(place) OVER (PARTITION BY tenant, family ORDER BY nr)) AS rank
    FROM fronted
  ), added AS (
    INSERT INTO ${wakes} AS known (${ACTOR}, family, timed, rank, front, since)
    SELECT ${ACTOR}, family, false, greatest(rank, base), front, ${NOW} FROM placed ORDER BY ${ACTOR}
    ON CONFLICT (${ACTOR}) WHERE NOT timed
      DO UPDATE SET again = true WHERE known.holder IS NOT NULL AND NOT known.again
    RETURNING again
  )`;
}

/** Statements that add wakes. */
function adding(wakes: string) {
  return {
    add: prepared(`WITH ${addAll(wakes, `SELECT * FROM ${GIVEN} WITH ORDINALITY AS given (${ACTOR}, family, nr)`)}
      SELECT pg_notify($5, $6) FROM added WHERE NOT again LIMIT 1`),
    addTimed: prepared(`WITH added AS (
        INSERT INTO ${wakes} (${ACTOR}, family, timed, rank, front, since, due)
        SELECT given.*, true, 0, false, ${NOW}, ${NOW} + $7 FROM ${GIVEN} AS given RETURNING 1
      ) SELECT pg_notify($5, $6) FROM added`),
  };
}

/** Statements of a worker that serves wakes. */
function serving(wakes: string) {
  const ranks = ranksIn(wakes);
  return {
    take: prepared(`WITH next AS (
        SELECT id FROM ${wakes} WHERE ${WAITS} ORDER BY rank, id LIMIT $2 FOR UPDATE SKIP LOCKED
      ) UPDATE ${wakes} AS known SET holder = $1, until = ${NOW} + $3 FROM next WHERE known.id = next.id
      RETURNING known.id, ${ACTOR}, since, rank`),
    end: prepared(`WITH ended AS (
        SELECT known.id, known.again, wait, ahead
        FROM unnest($2::bigint[], $3::bigint[], $4::int[]) AS ended (id, wait, ahead) JOIN ${wakes} AS known USING (id)
        WHERE holder = $1 ORDER BY ${ACTOR} FOR UPDATE OF known
      ), gone AS (
        DELETE FROM ${wakes} AS known USING ended WHERE known.id = ended.id AND wait IS NULL AND NOT ended.again
      ), kept AS (
        UPDATE ${wakes} AS known SET id = DEFAULT, holder = NULL, until = NULL, again = false, front = true,
          rank = ${ranks.again}, due = ${NOW} + wait, begun = ahead = 1,
          since = CASE WHEN wait IS NULL THEN ${NOW} ELSE since END
        FROM ended WHERE known.id = ended.id AND (wait IS NOT NULL OR ended.again) RETURNING due
      ) SELECT 1 FROM kept WHERE due IS NULL`),
    putBack: prepared(`WITH held AS (
        SELECT id FROM ${wakes} WHERE holder = $1 ORDER BY ${ACTOR} FOR UPDATE
      ) UPDATE ${wakes} AS known SET holder = NULL, until = NULL, again = false FROM held WHERE known.id = held.id`),
    renew: prepared(`WITH held AS (
        SELECT id FROM ${wakes} WHERE holder = $1 ORDER BY ${ACTOR} FOR UPDATE
      ) UPDATE ${wakes} AS known SET until = ${NOW} + $2 FROM held WHERE known.id = held.id`),
  };
}

/** Statements that let wakes wait whose time has come or whose holder is dead. */
function moving(wakes: string) {
  const ranks = ranksIn(wakes);
  return {
    promoteTimed: prepared(`WITH due AS (
        DELETE FROM ${wakes} WHERE id IN (
          SELECT id FROM ${wakes} WHERE timed AND due <= ${NOW} ORDER BY due LIMIT ${STEP} FOR UPDATE SKIP LOCKED
        ) RETURNING *
      ), ${addAll(wakes, `SELECT DISTINCT ON (${ACTOR}) ${ACTOR}, family, id AS nr FROM due`)} SELECT 1 FROM due`),
    promoteHeldBack: prepared(`WITH late AS (
        SELECT id FROM ${wakes} WHERE due <= ${NOW} AND NOT timed ORDER BY due LIMIT ${STEP} FOR UPDATE SKIP LOCKED
      ) UPDATE ${wakes} AS known SET id = DEFAULT, due = NULL, front = true,
        rank = CASE WHEN begun THEN ${ranks.first} - 1 ELSE ${ranks.again} END
      FROM late WHERE known.id = late.id RETURNING 1`),
    free: prepared(`WITH lapsed AS (
        SELECT id FROM ${wakes} WHERE holder IS NOT NULL AND until < ${NOW} LIMIT ${STEP} FOR UPDATE SKIP LOCKED
      ) UPDATE ${wakes} AS known SET id = DEFAULT, holder = NULL, until = NULL, again = false
      FROM lapsed WHERE known.id = lapsed.id RETURNING known.id, ${ACTOR}, since`),
  };
}

/** Statements that read the queue. */
function reading(wakes: string) {
  return {
    needs:
      prepared(`SELECT EXISTS (SELECT 1 FROM ${wakes} WHERE holder IS NOT NULL AND until < ${NOW}) AS lapsed,
        least((SELECT min(due) FROM ${wakes} WHERE timed),
          (SELECT min(due) FROM ${wakes} WHERE due IS NOT NULL AND NOT timed)) - ${NOW} AS "dueInMs"`),
    depth: prepared(`SELECT (SELECT count(*) FROM ${wakes} WHERE ${WAITS}) AS waiting,
        (SELECT count(*) FROM ${wakes} WHERE holder IS NOT NULL) AS active,
        (SELECT count(*) FROM ${wakes} WHERE timed)
          + (SELECT count(*) FROM ${wakes} WHERE due IS NOT NULL AND NOT timed) AS delayed`),
    backlog: prepared(`SELECT count(*) AS size FROM (
        SELECT 1 FROM ${wakes} WHERE ${WAITS} AND tenant = $1 LIMIT $2) AS waiting`),
    waiting: prepared(`(SELECT id, ${ACTOR}, since, false AS held FROM ${wakes}
          WHERE ${WAITS} AND ($2::text IS NULL OR tenant = $2) ORDER BY rank, id LIMIT $1)
        UNION ALL (SELECT id, ${ACTOR}, since, true FROM ${wakes}
          WHERE due IS NOT NULL AND NOT timed AND ($2::text IS NULL OR tenant = $2) ORDER BY due LIMIT $1)`),
  };
}
