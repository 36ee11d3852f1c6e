import { setTimeout as wait } from 'node:timers/promises';
import { startPostgresNode } from '../test/services/postgres.ts';
import { startReplicaSet } from '../test/services/replica-set.ts';
import type { Random } from '../test/support/engine-random.ts';

/** A database of the rig's own, whose primary is killed while processes use it. */
export interface OwnDatabase {
  url: string;
  /** What it is. */
  about: string;
  /** Resolves, with what was done, once every server is there again. */
  failOver(random: Random): Promise<string>;
  close(): Promise<void>;
}

const ELECTED_MS = 60_000;
const POLL_MS = 50;
/** How long PostgreSQL stays away. */
const AWAY_MS = 1_500;

export async function startOwnDatabase(kind: 'MongoDB' | 'PostgreSQL'): Promise<OwnDatabase> {
  const found = kind === 'MongoDB' ? await ownReplicaSet() : await ownPostgres();
  if ('not' in found) throw new Error(`no ${kind} of the rig's own: ${found.not}`);
  return found;
}

async function ownReplicaSet(): Promise<OwnDatabase | { not: string }> {
  const set = await startReplicaSet();
  if ('not' in set) return set;
  const { url, version, origin, primary, stepDown, stop } = set;

  async function untilElected(): Promise<void> {
    const until = Date.now() + ELECTED_MS;
    while ((await primary().catch(() => null)) === null) {
      if (Date.now() > until) throw new Error(`no primary within ${ELECTED_MS / 1_000} s`);
      await wait(POLL_MS);
    }
  }

  return {
    url,
    about: `replica set of three mongod ${version} (${origin})`,
    async failOver(random) {
      await untilElected();
      if (random() < 0.5) {
        await stepDown();
        await untilElected();
        return 'primary stepped down';
      }
      const killed = await primary();
      await killed.kill();
      await untilElected();
      await killed.start();
      return 'primary killed';
    },
    close: stop,
  };
}

async function ownPostgres(): Promise<OwnDatabase | { not: string }> {
  const started = await startPostgresNode();
  if ('not' in started) return started;
  const { url, version, node, stop } = started;
  return {
    url,
    about: `PostgreSQL ${version}`,
    async failOver() {
      await node.kill();
      await wait(AWAY_MS);
      await node.start();
      return 'server killed and started again';
    },
    close: stop,
  };
}
