import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { startFakeOpenAi } from '../packages/testing/src/fake-vendors.ts';
import type { Store } from '../src/store/store.ts';
import { type Random, randomOf } from '../test/support/engine-random.ts';
import { bundleProcess } from './bundle-process.ts';
import { type Clients, createClients } from './clients.ts';
import type { RigDatabase } from './database.ts';
import { createFakeModel } from './fake-model.ts';
import { type FakeTools, startFakeTools } from './fake-tools.ts';
import { type Fault, startFaults } from './faults.ts';
import { type Fleet, type Role, startFleet } from './fleet.ts';
import { conversationsFor, missedRecovery, missingGoals, recoveriesFor } from './goals.ts';
import type { OwnDatabase } from './own-database.ts';
import type { RigRedis } from './own-redis.ts';
import { createRecovery, type Recovery } from './recovery.ts';
import { recoveryPhase } from './recovery-phase.ts';
import { createWorkLog, type WorkLog } from './work-log.ts';

/**
 * One run: start the processes; load and faults together; end of faults, all up; quiet; single kills that measure
 * recovery; quiet. The results are in the database and in the return value; nothing is judged here.
 */
export interface KillRunOptions {
  seconds: number;
  seed: number;
  /** No faults. */
  calm: boolean;
  /** Directory for the logs of the processes. */
  dir: string;
  prefix: string;
  database: RigDatabase;
  ownDatabase: OwnDatabase | null;
  store: Store;
  redis: RigRedis;
  say: (line: string) => void;
}

export interface KillRun {
  /** Duration of load and faults. */
  seconds: number;
  clients: Clients;
  tools: FakeTools;
  faults: Fault[];
  fleet: Fleet;
  /** Recovery times in ms: of the recovery phase, and of the rest. */
  recovered: readonly number[];
  recoveredUnderLoad: readonly number[];
  missing: string[];
  /** Less than half of the planned work was done, so the run says nothing. */
  didLittle: boolean;
  /** From the end of the faults to quiet, ms; null if it did not become quiet, or not after the recovery phase. */
  quietAfterMs: number | null;
}

const API_TOKEN = 'rig';
/** Entry points of the fleet's processes. */
const SOURCES = {
  standby: path.join(import.meta.dirname, 'standby.ts'),
  agents: path.join(import.meta.dirname, 'agents.ts'),
};
const ROLES: Role[] = ['api', 'api', 'worker', 'worker', 'worker'];
/** Concurrent turns of a worker. More only make each slower, and a turn that outlasts its worker never ends. */
const CONCURRENCY = 4;
const BURSTS_PER_SECOND = 8;
const CANCEL_EVERY_MS = 500;
const TELL_EVERY_MS = 5_000;
const BACKLOG_EVERY_MS = 2_000;
/** Load pauses at this many busy actors or unanswered requests: this is not a flood test. */
const MOST_BACKLOG = 500;
const MOST_OPEN = 150;
/** Time without any progress: a slow machine may take its time, a stuck system may not. */
const QUIET_WITHIN_MS = 60_000;
const START_WITHIN_MS = 120_000;
/** On a slow machine, a run goes on until its goals are met, for at most half its time again. */
const MOST_TIMES = 1.5;
/**
 * Limit until half of the goals are met, without which the run says nothing. Shared machines were seen to halve in
 * speed.
 */
const MOST_TIMES_FOR_HALF = 4;
const RECOVERY_POLL_MS = 150;
/** Beyond the goal. */
const SPARE_RECOVERIES = 5;

export async function killRun(options: KillRunOptions): Promise<KillRun> {
  const { seconds, seed, dir, database, ownDatabase, store, redis, prefix, say } = options;
  const work = createWorkLog();
  const ending = new AbortController();
  const over = new AbortController();
  const measured = new AbortController();
  let isMeasuring = false;
  const faultsOn = () => !options.calm && !ending.signal.aborted;
  const tools = await startFakeTools(randomOf(seed * 31 + 11), work, faultsOn);
  const model = await startFakeOpenAi(
    createFakeModel(randomOf(seed * 31 + 12), work, faultsOn, () => isMeasuring),
  );
  const { standby, agents } = await bundleProcess(SOURCES, dir, say);
  const shared = [
    agents,
    `--${database.option}`,
    database.proxiedUrl,
    ...(redis.url === null ? [] : ['--redis', redis.url]),
    '--prefix',
    prefix,
    '--json',
  ];
  const logs = path.join(dir, 'logs');
  mkdirSync(logs, { recursive: true });
  const fleet = startFleet({
    script: standby,
    places: ROLES,
    argsOf: (role) =>
      role === 'api'
        ? ['serve', ...shared, '--port', '0']
        : ['worker', ...shared, '--concurrency', String(CONCURRENCY), '--max-lag', '0'],
    env: {
      TROUPE_TOKEN: API_TOKEN,
      // Not that of the rig's own surroundings.
      REDIS_URL: redis.url ?? '',
      RIG_MODEL_URL: model.url,
      RIG_TOOLS_URL: tools.url,
      // Loading is most of the cost of a restart.
      NODE_COMPILE_CACHE: path.join(dir, 'compile-cache'),
    },
    logs,
  });
  const recovery = createRecovery(store, over.signal, RECOVERY_POLL_MS);
  try {
    await within(fleet.allUp(), START_WITHIN_MS, () => `the processes do not start; see ${logs}`);
    say('all processes are up; load and faults begin');
    const began = Date.now();
    const conversations = conversationsFor(seconds);
    const clients = createClients({
      random: randomOf(seed * 31 + 13),
      conversations,
      apis: () => fleet.apis(),
      token: API_TOKEN,
    });
    const { faults, done } = startFaults({
      seed,
      fleet,
      redis,
      proxy: database.proxy,
      ownDatabase,
      signal: options.calm ? AbortSignal.abort() : ending.signal,
      onKill: ({ name }) => recovery.watch(work.of(name), Date.now()),
    });
    const state: LoadState = {
      clients,
      work,
      store,
      fleet,
      faults,
      recovery,
      backlog: 0,
      signal: ending.signal,
    };
    const loads = [
      pace(state, randomOf(seed * 31 + 14)),
      watchBacklog(state),
      cancelSome(state, randomOf(seed * 31 + 15)),
    ];
    const reporting = reportProgress(state, began, say, over.signal);
    const missing = await lastUntilDone(state, began, seconds, options.calm);
    ending.abort();
    await Promise.all([...loads, done]);
    const lasted = (Date.now() - began) / 1_000;
    await within(fleet.allUp(), START_WITHIN_MS, () => `the processes do not come back; see ${logs}`);
    const quietAfterMs = await quiet(state);
    over.abort();
    await reporting;
    const didLittle = didLessThanHalf(state, seconds);
    const run = {
      seconds: lasted,
      clients,
      tools,
      faults,
      fleet,
      didLittle,
      recoveredUnderLoad: recovery.times,
    };
    if (options.calm || quietAfterMs === null) return { ...run, recovered: [], missing, quietAfterMs };

    isMeasuring = true;
    const { times: recovered } = await recoveryPhase({
      random: randomOf(seed * 31 + 16),
      fleet,
      clients,
      work,
      store,
      recoveries: recoveriesFor(seconds) + SPARE_RECOVERIES,
      onKill: (target) => faults.push({ at: Date.now(), what: 'kill', target }),
      say,
      ended: measured.signal,
    });
    const isQuiet = (await quiet(state)) !== null;
    return {
      ...run,
      recovered,
      missing: [...missing, ...missedRecovery(seconds, recovered)],
      quietAfterMs: isQuiet ? quietAfterMs : null,
    };
  } finally {
    ending.abort();
    over.abort();
    measured.abort();
    await fleet.close();
    await Promise.all([model.close(), tools.close()]);
  }
}

interface LoadState {
  clients: Clients;
  work: WorkLog;
  store: Store;
  fleet: Fleet;
  faults: Fault[];
  recovery: Recovery;
  /** Actors with pending work. */
  backlog: number;
  signal: AbortSignal;
}

async function pace(state: LoadState, random: Random): Promise<void> {
  const { clients, signal } = state;
  while (await pause((1_000 / BURSTS_PER_SECOND) * 2 * random(), signal)) {
    if (state.backlog < MOST_BACKLOG && clients.open() < MOST_OPEN) clients.burst();
  }
}

async function watchBacklog(state: LoadState): Promise<void> {
  while (await pause(BACKLOG_EVERY_MS, state.signal)) {
    state.backlog = (await countDue(state.store)) ?? state.backlog;
  }
}

async function cancelSome({ clients, work, signal }: LoadState, random: Random): Promise<void> {
  while (await pause(CANCEL_EVERY_MS, signal)) {
    const at = work.all();
    const chosen = at[Math.floor(random() * at.length)];
    if (chosen) clients.cancel(chosen.conversation, chosen.agent);
  }
}

async function lastUntilDone(
  state: LoadState,
  began: number,
  seconds: number,
  isCalm: boolean,
): Promise<string[]> {
  for (;;) {
    await wait(200);
    const times = (Date.now() - began) / 1_000 / seconds;
    const missing = missingGoals(seconds, progressOf(state));
    if (times < 1) continue;
    if (isCalm || missing.length === 0 || times >= MOST_TIMES_FOR_HALF) return missing;
    if (times >= MOST_TIMES && !didLessThanHalf(state, seconds)) return missing;
  }
}

function didLessThanHalf(state: LoadState, seconds: number): boolean {
  return missingGoals(seconds / 2, progressOf(state)).length > 0;
}

function progressOf({ clients, faults }: LoadState) {
  const { posts } = clients;
  const times = (what: Fault['what']) => faults.filter((fault) => fault.what === what).length;
  return {
    kills: times('kill'),
    stops: times('continue'),
    queueLosses: times('wipe queue') + times('cut queue file') + times('fail over queue'),
    conversations: new Set(posts.map(({ conversation }) => conversation)).size,
    triggers: posts.reduce((sum, { acked, to }) => sum + (acked ? to.length : 0), 0),
  };
}

/** Resolves when no post is open and no actor has pending work, with or without leases, at two checks in a row. */
async function quiet(state: LoadState): Promise<number | null> {
  const { clients, store } = state;
  const began = Date.now();
  let least = Number.POSITIVE_INFINITY;
  let progressAt = began;
  for (let looks = 0; Date.now() - progressAt < QUIET_WITHIN_MS;) {
    await wait(1_000);
    const due = await countDue(store);
    if (due !== null) state.backlog = due;
    const left = clients.open() + (due ?? least);
    if (left < least) progressAt = Date.now();
    least = Math.min(least, left);
    looks = left === 0 && due !== null ? looks + 1 : 0;
    if (looks === 2) return Date.now() - began;
  }
  return null;
}

/** Null if the database did not answer. */
async function countDue(store: Store): Promise<number | null> {
  const query = { now: Number.MAX_SAFE_INTEGER, clock: Date.now(), since: 0, limit: 10 * MOST_BACKLOG };
  return store.due(query).then(
    (due) => due.length,
    () => null,
  );
}

async function reportProgress(
  state: LoadState,
  began: number,
  say: KillRunOptions['say'],
  signal: AbortSignal,
): Promise<void> {
  while (await pause(TELL_EVERY_MS, signal)) {
    const { clients, fleet, recovery, backlog } = state;
    const { kills, stops, queueLosses, triggers, conversations } = progressOf(state);
    const up = fleet.places.filter((place) => place.process?.state === 'up').length;
    say(
      `${Math.round((Date.now() - began) / 1_000)} s: ${triggers} triggers in ${conversations} conversations, ${clients.open()} posts open, ` +
        `${backlog} actors to serve, ${kills} kills, ${stops} stops, ${queueLosses} queue losses, ` +
        `${recovery.times.length} recovered, ${clients.cancelled.length} cancelled, ${up} of ${fleet.places.length} up`,
    );
  }
}

/** False if the signal ends the pause. */
async function pause(ms: number, signal: AbortSignal): Promise<boolean> {
  await wait(ms, undefined, { signal }).catch(() => undefined);
  return !signal.aborted;
}

async function within(work: Promise<void>, ms: number, problem: () => string): Promise<void> {
  const late = wait(ms, 'late', { ref: false });
  if ((await Promise.race([work, late])) === 'late') throw new Error(problem());
}
