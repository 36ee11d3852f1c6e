import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createStore } from '../src/store/create-store.ts';
import { openRigDatabase, openRigSchema, queueTables } from './database.ts';
import { figuresLine, figuresOf } from './figures.ts';
import { judge } from './judge.ts';
import { killRun } from './kill-run.ts';
import { readOptions, type RigOptions } from './options.ts';
import { startOwnDatabase } from './own-database.ts';
import { foreignRedis, type RigRedis, startOwnRedis, startOwnValkey, startReplicated } from './own-redis.ts';

/**
 * `npm run rig -- [--seconds 60] [--seed N] [--json] [--keep] [--calm] [--strict] [--postgres] [--kill-database] [--redis valkey|cluster|sentinel|none]`: kills, stops and cuts off real
 * processes at random, on a real Redis and a real server of MongoDB's protocol, or PostgreSQL, and then checks everything that was
 * stored. Prints one line of figures at the end. Exit code 1 on a violation, or if less than half of the planned work
 * was done. A missed goal is reported; on a slow machine it says more about the machine, so it fails the run only
 * with `--strict`.
 */
// A regular exit would close the handles of reset sockets, and Node 24 loops there forever.
process.exit(await main(readOptions(process.argv.slice(2))));

async function main(options: RigOptions): Promise<number> {
  const { seconds, seed, json, keep, calm, strict } = options;
  const [server, variable] = options.postgres ? ['PostgreSQL', 'POSTGRES_URL'] : ['MongoDB', 'MONGODB_URL'];
  const own = options.killDatabase
    ? await startOwnDatabase(options.postgres ? 'PostgreSQL' : 'MongoDB')
    : null;
  const url = own?.url ?? process.env[variable];
  if (!url) {
    say(`no ${server}: set ${variable}, or run \`npm run rig\`, which provides a server`);
    return 1;
  }
  say(`${own?.about ?? server}, seed ${seed}, ${seconds} s`);
  const dir = mkdtempSync(path.join(tmpdir(), 'troupe-rig-'));
  const name = `rig_${seed}_${Date.now().toString(36)}`;
  const database = await (options.postgres ? openRigSchema : openRigDatabase)(url, name);
  const redis = options.redis === 'none' ? queueTables(url, name) : await openRedis(dir, options.redis, name);
  if (!database.proxy) say('the database is a set of servers: its connections are not reset');
  const store = createStore(await database.open());
  let isKept = keep;
  try {
    const run = await killRun({
      seconds,
      seed,
      calm,
      dir,
      prefix: name,
      database,
      ownDatabase: own,
      store,
      redis,
      say,
    });
    say('quiet; reading everything');
    const { findings, counts, conversations } = await judge(run, store, dir);
    const figures = figuresOf({
      seconds: run.seconds,
      seed,
      conversations,
      counts,
      faults: run.faults,
      failedStarts: run.fleet.failedStarts,
      posts: run.clients.posts,
      violations: findings.length,
      recovered: run.recovered,
      recoveredUnderLoad: run.recoveredUnderLoad,
      quietAfterMs: run.quietAfterMs ?? Number.NaN,
    });
    for (const { invariant, conversation, problem } of findings)
      say(`${invariant} ${conversation}: ${problem}`);
    if (findings.length > 0) say(`the conversations with violations, the faults and the logs are in ${dir}`);
    if (run.missing.length > 0 && !calm) say(`goals missed: ${run.missing.join(', ')}`);
    isKept ||= findings.length > 0;
    if (keep) say(`kept: ${database.url}, logs in ${dir}`);
    console.log(json ? JSON.stringify({ ...figures, missing: run.missing, findings }) : figuresLine(figures));
    const isFailed = findings.length > 0 || (!calm && (run.didLittle || (strict && run.missing.length > 0)));
    return isFailed ? 1 : 0;
  } catch (error) {
    isKept = true;
    say(`the rig failed; logs are in ${dir}`);
    throw error;
  } finally {
    if (!keep) await database.drop();
    await store.close();
    await database.proxy?.close();
    await redis.close();
    await own?.close();
    if (!isKept) rmSync(dir, { recursive: true, force: true });
  }
}

async function openRedis(
  dir: string,
  kind: Exclude<RigOptions['redis'], 'none'>,
  prefix: string,
): Promise<RigRedis> {
  if (kind === 'valkey') return startOwnValkey(dir);
  if (kind !== 'single')
    return startReplicated(kind === 'cluster' ? 'Redis Cluster' : 'Redis Sentinel', prefix);
  const own = await startOwnRedis(dir);
  if (own) return own;
  const url = process.env['REDIS_URL'];
  if (!url) throw new Error('no Redis: put redis-server on the PATH, or set REDIS_URL');
  say(
    'redis-server is not on the PATH: the server of REDIS_URL is only wiped (FLUSHDB), its file is not cut',
  );
  return foreignRedis(url);
}

function say(line: string): void {
  process.stderr.write(`rig: ${line}\n`);
}
