import { type ActorAddress, familyOf, type QueueDepth, type TenantId, type WaitingWake } from '../troupe.ts';
import { type QueueDatabase, queueTablesOf } from './queue-database.ts';
import { STEP, type WakeStatements, wakeStatements } from './wake-statements.ts';

/** A wake that this process holds. */
export interface HeldWake {
  /** Changes whenever the wake waits anew, so that an earlier holder changes nothing. */
  id: number;
  address: ActorAddress;
  /** When the actor was woken, ms since the epoch. */
  since: number;
}

/** How a held wake ends: done, or to be served after `waitMs`; `isBegun`: before others. */
export interface EndedWake {
  id: number;
  waitMs: number | null;
  isBegun: boolean;
}

/** Whether holders have died, and when the next wake is due: 0 or less is now. */
export interface WakeNeeds {
  lapsed: boolean;
  dueInMs: number | null;
}

/** The queue, as rows of one table: see `queue-database.ts` for the columns. */
export class WakeTable {
  readonly #database: QueueDatabase;
  readonly #channel: string;
  readonly #statements: WakeStatements;

  constructor(database: QueueDatabase, channel: string) {
    this.#database = database;
    this.#channel = channel;
    this.#statements = wakeStatements(queueTablesOf(database.schema).wakes);
  }

  /** Adds a wake for each actor, which must differ. Listeners hear `hint` if a worker may be needed. */
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

  /** Ends held wakes. Returns how many of them wait again at once, because their actors were woken meanwhile. */
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

  /** Lets due wakes wait for a worker. Returns whether there may be more. */
  async promote(): Promise<boolean> {
    const timed = await this.#database.rows(this.#statements.promoteTimed);
    const heldBack = await this.#database.rows(this.#statements.promoteHeldBack);
    return timed.length === STEP || heldBack.length === STEP;
  }

  /** Frees the wakes of holders that died. Returns their actors. */
  async free(): Promise<ActorAddress[]> {
    return (await this.#database.rows<Row>(this.#statements.free)).map(addressOf);
  }

  async depth(): Promise<QueueDepth> {
    const [depth] = await this.#database.rows<QueueDepth>(this.#statements.depth);
    return depth ?? { waiting: 0, active: 0, delayed: 0 };
  }

  /** At most `most`, so that a long queue costs no more. */
  async backlog(tenant: TenantId, most: number): Promise<number> {
    const [found] = await this.#database.rows<{ size: number }>(this.#statements.backlog, [tenant, most]);
    return found?.size ?? 0;
  }

  /** The longest first. Of a longer queue, those that are served next. */
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
