import { systemClock } from '../../base/clock.ts';
import { TroupeError } from '../../base/errors.ts';
import { DEFAULT_TENANT, type TenantId, ConversationId, templateOf } from '../../events/index.ts';
import type { LogProblem, LogVerification, Store } from '../../store/store.ts';
import { count, number, paint, print, printable, printHint, printJson } from '../render/output.ts';
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { createTenants } from '../../library/facade/credentials.ts';
import { loadDatabase, needOf, keyValueOf } from '../../library/runtime/services.ts';
import { createStore } from '../../store/create-store.ts';
import type { ConversationPlace } from '../../store/driver.ts';
import { lockDataDir } from '../../store/sqlite/data-lock.ts';
import { openSqliteDriver } from '../../store/sqlite/sqlite-driver.ts';
import { databaseIn } from '../process/operator-flags.ts';
import { DEFAULT_DATA, connect, serverOf } from '../client/connect.ts';
import { undefinedActors } from '../../actors/engine/undefined-agents.ts';
import type { TroupeInput } from '../../library/config/agents-file.ts';

interface VerifyOptions {
  /** Only these conversations; empty: all. */
  conversations: readonly string[];
  url?: string | undefined;
  data?: string | undefined;
  json?: boolean | undefined;
}

type Finding = LogProblem & { tenant?: TenantId; conversation: string };

interface Totals {
  conversations: number;
  events: number;
  /** Events whose text was erased. */
  erased: number;
  /** Events without a chain value. */
  unchained: number;
  problemCount: number;
  /** At most `MOST_LISTED`. */
  problems: Finding[];
  /** Conversations whose chain begins more than once, at most `MOST_LISTED`, each with the seqs where it begins. */
  interrupted: { tenant?: TenantId; conversation: string; begins: number[] }[];
}

const MOST_LISTED = 1_000;
const PROGRESS_MS = 2_000;

/** Verifies stored conversations one by one and in parts, so that memory does not grow with them. */
export async function verify({ conversations: named, json, ...place }: VerifyOptions): Promise<void> {
  const source = await openVerifySource(place);
  const totals: Totals = {
    conversations: 0,
    events: 0,
    erased: 0,
    unchained: 0,
    problemCount: 0,
    problems: [],
    interrupted: [],
  };
  const showProgress = createProgress(totals);
  const missing = new Set(named);
  try {
    for (const tenant of await source.tenants()) {
      for await (const conversation of named.length > 0 ? named : source.conversations(tenant))
        if (await verifyOne(source, totals, { tenant, conversation }, showProgress))
          missing.delete(conversation);
    }
  } finally {
    await source.close();
  }
  for (const conversation of missing)
    throw new TroupeError('conversation_unknown', `there is no conversation "${conversation}"`, {
      conversation,
    });
  const isWell = totals.problemCount === 0;
  if (json) printJson({ ok: isWell, ...totals });
  else printTotals(totals);
  if (!isWell) process.exitCode = 1;
}

/** False if there is no such conversation. */
async function verifyOne(
  source: VerifySource,
  totals: Totals,
  { tenant, conversation }: { tenant: TenantId | null; conversation: string },
  showProgress: () => void,
): Promise<boolean> {
  const place = { ...(tenant !== null && tenant !== DEFAULT_TENANT && { tenant }), conversation };
  const begins: number[] = [];
  for (let after: number | null = 0; after !== null;) {
    const part: LogVerification | null = await source
      .verify(tenant, conversation, after)
      .catch(unknownAsNull);
    if (!part) return after > 0;
    if (after === 0) totals.conversations += 1;
    totals.events += part.events;
    totals.erased += part.erased;
    totals.unchained += part.unchained;
    totals.problemCount += part.problemCount;
    for (const problem of part.problems)
      if (totals.problems.length < MOST_LISTED) totals.problems.push({ ...place, ...problem });
    if (begins.length < MOST_LISTED) begins.push(...part.begins);
    showProgress();
    after = part.next;
  }
  if (begins.length > 1 && totals.interrupted.length < MOST_LISTED)
    totals.interrupted.push({ ...place, begins });
  return true;
}

/** The conversation was deleted in the meantime, or belongs to another tenant. */
function unknownAsNull(error: unknown): null {
  if (error instanceof TroupeError && error.code === 'conversation_unknown') return null;
  throw error;
}

/** Reports on stderr every few seconds. */
function createProgress(totals: Totals): () => void {
  let last = systemClock.monotonic();
  return () => {
    const now = systemClock.monotonic();
    if (now - last < PROGRESS_MS) return;
    last = now;
    printHint(`verified ${count(totals.conversations, 'conversation')}, ${count(totals.events, 'event')}`);
  };
}

function printTotals(totals: Totals): void {
  for (const { tenant, conversation, ...problem } of totals.problems) {
    const where = tenant === undefined ? conversation : `${tenant}/${conversation}`;
    print(`${paint('red', 'failed ')}  ${printable(where)}  ${printable(problemText(problem))}`);
  }
  const more = totals.problemCount - totals.problems.length;
  if (more > 0) print(`${paint('red', 'failed ')}  and ${number(more)} more`);
  for (const { tenant, conversation, begins } of totals.interrupted) {
    const where = tenant === undefined ? conversation : `${tenant}/${conversation}`;
    const text = `the chain begins again at event ${begins.slice(1).join(', ')}: an older version wrote before it, or chain values were removed`;
    print(`${paint('yellow', 'warning')}  ${printable(where)}  ${text}`);
  }
  const { conversations, events, erased, unchained, problemCount } = totals;
  const found = problemCount === 0 ? 'no damage found' : `${count(problemCount, 'problem')} found`;
  const old = unchained === 0 ? '' : `; ${count(unchained, 'event')} without a chain value`;
  const gone = erased === 0 ? '' : `; the words of ${count(erased, 'event')} were erased`;
  const mark = problemCount === 0 ? paint('green', 'ok     ') : paint('red', 'failed ');
  print(`${mark}  ${count(conversations, 'conversation')}, ${count(events, 'event')}: ${found}${gone}${old}`);
}

function problemText(problem: LogProblem): string {
  if (problem.kind !== 'missing')
    return `event ${problem.seq} (${problem.id}) is ${problem.kind}: ${problem.reason}`;
  const { seq, upTo } = problem;
  return seq === upTo ? `event ${seq} is missing` : `events ${seq} to ${upTo} are missing`;
}

/** The conversations of a server or of a database. */
interface VerifySource {
  /** Null: the tenant of the caller's credential. */
  tenants(): Promise<readonly (TenantId | null)[]>;
  conversations(tenant: TenantId | null): AsyncGenerator<string>;
  /** Verifies a part of a conversation, see `Troupe.verify`. Throws `conversation_unknown`. */
  verify(tenant: TenantId | null, conversation: string, after: number): Promise<LogVerification>;
  close(): Promise<void>;
}

/**
 * The server at `url`; else the data directory `data`, or the server that has it open; else the database of `MONGODB_URL` or
 * `POSTGRES_URL`; else `.troupe`. A database has all tenants.
 */
async function openVerifySource({
  url,
  data,
}: {
  url?: string | undefined;
  data?: string | undefined;
}): Promise<VerifySource> {
  const server = url ?? (data === undefined ? process.env['TROUPE_URL'] : undefined);
  if (server) return serverSource({ url: server });
  const dir = data ?? DEFAULT_DATA;
  if (data === undefined && databaseIn(process.env)) {
    const { store, close } = await openOwnStore(dir, process.env);
    return storeSource(store, close);
  }
  if (!existsSync(dir)) {
    const message = `there is no data directory ${dir}; name it with --data, or a server with --url`;
    throw new TroupeError('config_invalid', message, { data: dir });
  }
  if (serverOf(dir) !== null) return serverSource({ data: dir });
  const { store, close } = await openOwnStore(dir, {});
  return storeSource(store, close);
}

/** The database that the environment names, else a data directory that no process has open. */
async function openOwnStore(
  dir: string,
  env: Record<string, string | undefined>,
): Promise<{ store: Store; close: () => Promise<void> }> {
  const database = databaseIn(env);
  if (database) {
    const openDriver = await loadDatabase(database, needOf(database, undefined));
    const store = createStore(await openDriver());
    return { store, close: () => store.close() };
  }
  const lock = lockDataDir(resolve(dir));
  try {
    const store = createStore(await openSqliteDriver({ path: lock.paths.database }));
    return {
      store,
      async close() {
        await store.close();
        lock.release();
      },
    };
  } catch (error) {
    lock.release();
    throw error;
  }
}

async function serverSource(options: { url?: string; data?: string }): Promise<VerifySource> {
  const client = await connect(options, { needs: 'data' });
  return {
    tenants: async () => [null],
    async *conversations() {
      let before: string | null = null;
      do {
        const page = await client.listConversations(before ?? undefined);
        for (const { id } of page.conversations) yield id;
        before = page.next;
      } while (before !== null);
    },
    verify: (_, conversation, after) => client.verify(conversation, after),
    close: () => client.close(),
  };
}

const PAGE = 200;

function storeSource(store: Store, close: () => Promise<void>): VerifySource {
  return {
    tenants: () => createTenants(keyValueOf(store, DEFAULT_TENANT)).list(),
    async *conversations(tenant) {
      let before: ConversationPlace | null = null;
      do {
        const query = { limit: PAGE, ...(before && { before }) };
        const page: Awaited<ReturnType<Store['listConversations']>> = await store.listConversations(
          tenant ?? DEFAULT_TENANT,
          query,
        );
        for (const { id } of page.conversations) yield id;
        before = page.next;
      } while (before !== null);
    },
    async verify(tenant, conversation, after) {
      const id = ConversationId.safeParse(conversation);
      const log = id.success && { tenant: tenant ?? DEFAULT_TENANT, conversation: id.data };
      const part = log && (await store.verify(log, { after }));
      if (part && part.head > 0) return part;
      const message = `there is no conversation "${conversation}"`;
      throw new TroupeError('conversation_unknown', message, { conversation });
    },
    close,
  };
}

/** Actors with work that the definition does not name, in a database or in a data directory that no process has open. */
export async function openWork(
  { agents, templates = [] }: TroupeInput,
  { data, env }: { data: string; env: Record<string, string | undefined> },
): ReturnType<typeof undefinedActors> {
  const ids = new Set<string>(agents.flatMap(({ id, aliases = [] }) => [id, ...aliases]));
  const kinds = new Set<string>(templates.map(({ id }) => id));
  const has = (agent: string) => ids.has(agent) || kinds.has(templateOf(agent) ?? '');
  const { store, close } = await openOwnStore(data, env);
  try {
    return await undefinedActors({ store, agents: { has }, clock: systemClock });
  } finally {
    await close();
  }
}
