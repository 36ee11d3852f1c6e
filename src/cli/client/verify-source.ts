import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { TroupeError } from '../../base/errors.ts';
import { ConversationId, DEFAULT_TENANT, type TenantId } from '../../events/index.ts';
import { createTenants } from '../../library/facade/credentials.ts';
import { loadDatabase, needOf } from '../../library/runtime/open-database.ts';
import { keyValueOf } from '../../library/runtime/services.ts';
import { createStore } from '../../store/create-store.ts';
import type { ConversationPlace } from '../../store/driver.ts';
import { lockDataDir } from '../../store/sqlite/data-lock.ts';
import { openSqliteDriver } from '../../store/sqlite/sqlite-driver.ts';
import type { LogVerification, Store } from '../../store/store.ts';
import { databaseIn } from '../process/service-urls.ts';
import { connect, serverOf } from './connect.ts';

/** The conversations of a server or of a database. */
export interface VerifySource {
  /** Null: the tenant of the caller's credential. */
  tenants(): Promise<readonly (TenantId | null)[]>;
  conversations(tenant: TenantId | null): AsyncGenerator<string>;
  /** A part of a conversation, see `Troupe.verify`. Throws `conversation_unknown`. */
  verify(tenant: TenantId | null, conversation: string, after: number): Promise<LogVerification>;
  close(): Promise<void>;
}

const DEFAULT_DATA = '.troupe';

/**
 * The server at `url`, else the data directory `data` (or the server that has it open), else the database of `MONGODB_URL` or
 * `POSTGRES_URL`, else `.troupe`. A database has all tenants.
 */
export async function openVerifySource({
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
export async function openOwnStore(
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
