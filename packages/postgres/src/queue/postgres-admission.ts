import { randomUUID } from 'node:crypto';
import {
  type ActorAddress,
  type Admission,
  type AdmissionCaps,
  admissionLimits,
  type AdmissionLoad,
  createAskServer,
  createHeldSlots,
  DEFAULT_SLOT_MS,
  type Entry,
  parseSlot,
  parseWish,
  retryInMs,
  slotText,
  type TenantId,
  wishText,
  type CallBucket,
  type CallRate,
  enterSlot,
  FORGOTTEN_MS,
  type HeldPlace,
  MOST_REFUSED,
  RETRY_TO_MS,
  type SlotAsk,
  takeToken,
} from '../troupe.ts';
import {
  createBatches,
  type QueueDatabase,
  prepared,
  type QueueQueries,
  queueTablesOf,
} from './queue-database.ts';

interface PostgresAdmissionOptions {
  /** Shared with others, so `close` leaves it open. */
  database: QueueDatabase;
  caps: AdmissionCaps;
  onWarning: (error: unknown, where: string) => void;
  /** Called with the error of each failed statement. */
  onFailed?: (error: unknown) => void;
  slotMs?: number;
  /** PostgreSQL counts as unavailable after this time without an answer, ms. */
  answerMs?: number;
  /** 0 <= n < 1. */
  random?: () => number;
}

const MOST_ASKED = 64;
const ADMITTED: Entry = { kind: 'admitted', leave: async () => {} };

/** Admission in PostgreSQL. `admission-rules.ts` keeps the granted slots. */
export function createPostgresAdmission(options: PostgresAdmissionOptions): Admission {
  const { database, caps, slotMs = DEFAULT_SLOT_MS, random = Math.random } = options;
  const limits = admissionLimits(caps);
  const table = createAdmissionTable(database);
  const within = createAskServer({ ...options, server: 'PostgreSQL' });
  const slots = createHeldSlots({ places: table, ask: within, slotMs });
  const batches = createBatches(async (asks: AdmissionAsk[]) => {
    const answers = await table.decide(asks);
    return new Map(asks.map((ask, at) => [ask, answers[at] ?? 0]));
  }, MOST_ASKED);
  const decide = async (ask: AdmissionAsk): Promise<number> => (await batches.add(ask)).get(ask) ?? 0;

  async function enter(address: ActorAddress, provider: string): Promise<Entry> {
    const { tenantCap } = limits;
    const providerCap = limits.providerCap(provider);
    if (tenantCap === null && providerCap === null) return ADMITTED;
    const { tenant } = address;
    const slot = slotText({ address, provider }, randomUUID());
    const scopes = [
      ...(tenantCap === null ? [] : [tenantScope(tenant)]),
      ...(providerCap === null ? [] : [providerScope(provider)]),
    ];
    const ask = { tenant, slot, slotMs, tenantCap, providerCap };
    const wish = wishText({ address, provider, for: 'slot' });
    const waitMs = await within(
      () => decide({ kind: 'slot', ask, provider, wish }),
      () => void slots.removeLeft(slot, scopes),
    );
    if (waitMs !== null && waitMs > 0) return { kind: 'full', retryInMs: retryInMs(random) };
    return { kind: 'admitted', leave: slots.hold(slot, scopes) };
  }

  async function takeCall(address: ActorAddress, provider: string): Promise<number> {
    const rate = limits.callRate(provider);
    if (!rate) return 0;
    const wish = wishText({ address, provider, for: 'call' });
    return (await within(() => decide({ kind: 'call', rate, provider, wish }))) ?? 0;
  }

  async function load(tenant: TenantId): Promise<AdmissionLoad> {
    const capped = Object.entries(caps.providers ?? {});
    const scopes = [
      ...(caps.turnsPerTenant === undefined ? [] : [tenantScope(tenant)]),
      ...capped.filter(([, { turns }]) => turns !== undefined).map(([name]) => providerScope(name)),
    ];
    // Without caps nothing is refused, so there is nothing to read (C4).
    const isCapped = scopes.length > 0 || capped.length > 0;
    const found = isCapped ? await within(() => table.load(scopes)) : null;
    if (!found) return { caps, held: [], waiting: [] };
    const waiting = found.wishes.flatMap(({ text, since }) => {
      const wish = parseWish(text);
      return wish ? [{ ...wish, since }] : [];
    });
    return { caps, held: [...new Set(found.held)].flatMap((slot) => parseSlot(slot) ?? []), waiting };
  }

  return { enter, takeCall, load, close: () => slots.close() };
}

/** A request to admission: for a slot, or for one call. */
type AdmissionAsk =
  | { kind: 'slot'; ask: SlotAsk; provider: string; wish: string }
  | { kind: 'call'; rate: CallRate; provider: string; wish: string };

const tenantScope = (tenant: string) => `tenant:${tenant}`;
const providerScope = (provider: string) => `provider:${provider}`;
const askingScope = (provider: string) => `asking:${provider}`;
const callsScope = (provider: string) => `calls:${provider}`;
const REFUSED = 'refused';

/** 'TRUR': id of the lock under which one process at a time decides. */
const LOCK = 0x54525552;

type Row = HeldPlace & { since: number; until: number };
type Set = ReadonlyMap<string, number>;

/**
 * The state of admission as rows. `until` of held slots and of asking tenants is their end. A bucket of calls has its level
 * in `since` and its time in `until`. Refused wishes use both. A process reads the rows under a lock that one process has
 * at a time, decides by the rules of `admission-rules.ts`, and answers all its waiting requests together.
 */
function createAdmissionTable(database: QueueDatabase) {
  const { admission } = queueTablesOf(database.schema);
  const statements = statementsOf(admission);

  async function decide(queries: QueueQueries, asks: readonly AdmissionAsk[]): Promise<number[]> {
    await queries.rows(statements.lock, [database.schema]);
    const scopes = new Set(asks.flatMap(scopesOf));
    const rows = await queries.rows<Row & { now: number }>(statements.read, [[...scopes]]);
    const now = rows[0]?.now ?? 0;
    const accounts = createAccounts(rows);
    const answers = asks.map((each) => answer(accounts, each, now));
    const { removed, written } = accounts.changes();
    if (written.length > 0) await queries.rows(statements.write, columnsOf(written));
    if (removed.length > 0) await queries.rows(statements.remove, placesOf(removed));
    const refusals = asks.flatMap(({ wish, kind }, at) => {
      const waitMs = answers[at] ?? 0;
      const retryMs = kind === 'slot' ? RETRY_TO_MS : waitMs;
      return waitMs > 0
        ? [{ scope: REFUSED, member: wish, since: now, until: now + retryMs + FORGOTTEN_MS }]
        : [];
    });
    const refused = new Map(refusals.map((each) => [each.member, each]));
    const granted = asks.flatMap(({ wish }, at) =>
      answers[at] === 0 ? [{ scope: REFUSED, member: wish }] : [],
    );
    if (refused.size > 0) await queries.rows(statements.refuse, columnsOf([...refused.values()]));
    if (granted.length > 0) await queries.rows(statements.remove, placesOf(granted));
    return answers;
  }

  return {
    /** For each request 0 if granted, else the time to wait, ms. For slots any time above 0 only means that it was refused. */
    decide: (asks: readonly AdmissionAsk[]) => database.transaction((queries) => decide(queries, asks)),
    async hold(places: readonly HeldPlace[], slotMs: number): Promise<void> {
      await database.rows(statements.hold, [...placesOf(places), slotMs]);
    },
    async remove(places: readonly HeldPlace[]): Promise<void> {
      await database.rows(statements.remove, placesOf(places));
    },
    /** The members of these sets, and the refused wishes with the time of their first refusal, ms since the epoch. */
    async load(
      scopes: readonly string[],
    ): Promise<{ held: string[]; wishes: { text: string; since: number }[] }> {
      const rows = await database.rows<Row>(statements.load, [[...scopes]]);
      const wishes = rows.filter(({ scope }) => scope === REFUSED);
      return {
        held: rows.filter(({ scope }) => scope !== REFUSED).map(({ member }) => member),
        wishes: wishes.map(({ member, since }) => ({ text: member, since })),
      };
    },
  };
}

function scopesOf(each: AdmissionAsk): string[] {
  if (each.kind === 'call') return [callsScope(each.provider)];
  return [tenantScope(each.ask.tenant), providerScope(each.provider), askingScope(each.provider)];
}

function answer(accounts: Accounts, each: AdmissionAsk, now: number): number {
  const { provider } = each;
  if (each.kind === 'call') {
    const { waitMs, bucket } = takeToken(accounts.bucket(callsScope(provider)), each.rate, now);
    accounts.setBucket(callsScope(provider), bucket);
    return waitMs;
  }
  const { ask } = each;
  const [tenant, held, asking] = [tenantScope(ask.tenant), providerScope(provider), askingScope(provider)];
  const before = { tenant: accounts.set(tenant), provider: accounts.set(held), asking: accounts.set(asking) };
  const { admitted, state } = enterSlot(before, ask, now);
  accounts.setSet(tenant, state.tenant);
  accounts.setSet(held, state.provider);
  accounts.setSet(asking, state.asking);
  return admitted ? 0 : RETRY_TO_MS;
}

type Accounts = ReturnType<typeof createAccounts>;

/** The state of admission during one decision: the rows that were read, the changed state, and the difference to write. */
function createAccounts(rows: readonly Row[]) {
  const before = new Map<string, Map<string, Row>>();
  for (const row of rows) {
    if (row.scope === '') continue;
    const members = before.get(row.scope) ?? new Map<string, Row>();
    before.set(row.scope, members.set(row.member, row));
  }
  const sets = new Map<string, Set>();
  const buckets = new Map<string, CallBucket>();

  function changes(): { written: Row[]; removed: HeldPlace[] } {
    const written: Row[] = [...buckets].map(([scope, { level, at }]) => ({
      scope,
      member: '',
      since: level,
      until: at,
    }));
    const removed: HeldPlace[] = [];
    for (const [scope, set] of sets) {
      const known = before.get(scope);
      for (const [member, until] of set)
        if (known?.get(member)?.until !== until) written.push({ scope, member, since: 0, until });
      for (const member of known?.keys() ?? []) if (!set.has(member)) removed.push({ scope, member });
    }
    return { written, removed };
  }

  return {
    set: (scope: string): Set =>
      sets.get(scope) ??
      new Map([...(before.get(scope) ?? [])].map(([member, { until }]) => [member, until])),
    setSet: (scope: string, set: Set) => void sets.set(scope, set),
    bucket(scope: string): CallBucket | null {
      const row = before.get(scope)?.get('');
      return buckets.get(scope) ?? (row ? { level: row.since, at: row.until } : null);
    },
    setBucket: (scope: string, bucket: CallBucket) => void buckets.set(scope, bucket),
    changes,
  };
}

function placesOf(places: readonly HeldPlace[]): [string[], string[]] {
  return [places.map(({ scope }) => scope), places.map(({ member }) => member)];
}

function columnsOf(rows: readonly Row[]): [string[], string[], number[], number[]] {
  return [...placesOf(rows), rows.map(({ since }) => since), rows.map(({ until }) => until)];
}

/** The server's time after the wait for the lock. The start of the transaction would be before the wait. */
const NOW = '(extract(epoch FROM statement_timestamp()) * 1000)::bigint';

function statementsOf(admission: string) {
  const given =
    'unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[]) AS given (scope, member, since, until)';
  const places = 'unnest($1::text[], $2::text[]) AS given (scope, member)';
  const write = (source: string, since: string) =>
    `INSERT INTO ${admission} AS known (scope, member, since, until) ${source} ORDER BY scope, member
     ON CONFLICT (scope, member) DO UPDATE SET since = ${since}, until = excluded.until`;
  return {
    lock: prepared(`SELECT pg_advisory_xact_lock(${LOCK}, hashtext($1))`),
    // The first row has the server's time and is not a member.
    read: prepared(`SELECT '' AS scope, '' AS member, 0::bigint AS since, 0::bigint AS until, ${NOW} AS now
      UNION ALL SELECT scope, member, since, until, ${NOW} FROM ${admission} WHERE scope = ANY ($1::text[])`),
    write: prepared(write(`SELECT * FROM ${given}`, 'excluded.since')),
    // A wish whose row has ended counts as new.
    refuse: prepared(
      write(
        `SELECT * FROM ${given}`,
        `CASE WHEN known.until <= excluded.since THEN excluded.since ELSE known.since END`,
      ),
    ),
    hold: prepared(write(`SELECT scope, member, 0, ${NOW} + $3 FROM ${places}`, '0')),
    remove: prepared(`WITH removed AS (
        SELECT scope, member FROM ${admission} AS known JOIN ${places} USING (scope, member) ORDER BY scope, member
        FOR UPDATE OF known
      ) DELETE FROM ${admission} AS known USING removed
        WHERE known.scope = removed.scope AND known.member = removed.member`),
    load: prepared(`WITH forgotten AS (
        DELETE FROM ${admission} WHERE scope = '${REFUSED}' AND until <= ${NOW}
      )
      (SELECT scope, member, since, until FROM ${admission}
        WHERE scope = '${REFUSED}' AND until > ${NOW} ORDER BY since LIMIT ${MOST_REFUSED})
      UNION ALL SELECT scope, member, since, until FROM ${admission}
        WHERE scope = ANY ($1::text[]) AND until > ${NOW}`),
  };
}
