import { setTimeout as wait } from 'node:timers/promises';
import { type Random, randomOf } from '../test/support/engine-random.ts';
import { LEASE_MS } from './agents.ts';
import type { Fleet, FleetProcess, Place } from './fleet.ts';
import type { OwnDatabase } from './own-database.ts';
import type { RigRedis } from './own-redis.ts';
import type { TcpProxy } from './tcp-proxy.ts';

/** A fault that was injected. The list of faults, in order, is the only record to judge a violation by. */
export interface Fault {
  at: number;
  what:
    | 'kill'
    | 'stop'
    | 'continue'
    | 'wipe queue'
    | 'cut queue file'
    | 'fail over queue'
    | 'fail over database'
    | 'reset connections';
  target: string;
}

export interface FaultOptions {
  seed: number;
  fleet: Fleet;
  redis: RigRedis;
  /** Null if the database cannot be put behind a proxy. */
  proxy: TcpProxy | null;
  /** Null if the servers of the database are not the rig's own. */
  ownDatabase: OwnDatabase | null;
  signal: AbortSignal;
  /** Called just before a process is killed. */
  onKill: (target: FleetProcess) => void;
}

const STOP_MS = 2 * LEASE_MS;
/** Minimum lifetime of a continued process: the test is about what it does with its old leases. */
const AFTERMATH_MS = 1_000;
/** With fewer processes up, a slow machine would do nothing but start processes. */
const LEAST_UP = 3;
const QUEUE_LOSS_EVERY_MS = 24_000;
const RESET_EVERY_MS = 11_000;
/** From the end of one to the next. */
const DATABASE_EVERY_MS = 12_000;

/** Starts all faults. `faults` grows; `done` resolves after the signal, when nothing is stopped any more. */
export function startFaults(options: FaultOptions): { faults: Fault[]; done: Promise<void> } {
  const { seed, fleet, redis, proxy, ownDatabase, signal, onKill } = options;
  const faults: Fault[] = [];
  const spared = new Set<FleetProcess>();
  const note = (what: Fault['what'], target: string) => faults.push({ at: Date.now(), what, target });

  /** Each kind has a separate random stream, so that one does not shift the others. */
  async function every(stream: number, pause: (random: Random) => number, act: Act): Promise<void> {
    const random = randomOf(seed * 31 + stream);
    for (;;) {
      await wait(pause(random), undefined, { signal }).catch(() => undefined);
      if (signal.aborted) return;
      await act(random);
    }
  }

  function pick(random: Random, among: (place: Place) => boolean): Place | undefined {
    const places = fleet.places.filter(
      (place) => place.process?.state === 'up' && !spared.has(place.process) && among(place),
    );
    return places[Math.floor(random() * places.length)];
  }

  async function kill(random: Random): Promise<void> {
    await until(() => fleet.places.filter((each) => each.process?.state === 'up').length >= LEAST_UP, signal);
    const place = pick(random, () => true);
    if (!place?.process || signal.aborted) return;
    onKill(place.process);
    const target = fleet.kill(place);
    note('kill', `${place.role} ${target.name}`);
  }

  async function stop(random: Random): Promise<void> {
    // Mostly workers: an API holds no leases.
    const role = random() < 0.8 ? 'worker' : 'api';
    const place = pick(random, (each) => each.role === role);
    if (!place) return;
    const target = fleet.stop(place);
    note('stop', `${role} ${target.name}`);
    spared.add(target);
    await wait(STOP_MS);
    fleet.resume(place);
    note('continue', `${role} ${target.name}`);
    void wait(AFTERMATH_MS).then(() => spared.delete(target));
  }

  let losses = 0;
  async function loseQueue(random: Random): Promise<void> {
    losses += 1;
    if (redis.failOver && losses % 2 === 1) {
      await redis.failOver();
      return void note('fail over queue', 'primary killed');
    }
    if (losses % 2 === 1 || !redis.own || redis.failOver) {
      await redis.wipe();
      return void note('wipe queue', redis.own ? 'all' : 'this database');
    }
    const keep = 0.2 + random() * 0.6;
    await redis.cutFile(keep);
    note('cut queue file', `kept ${Math.round(keep * 100)} %`);
  }

  async function reset(): Promise<void> {
    if (proxy) note('reset connections', `${proxy.resetAll()}`);
  }

  async function failOverDatabase(random: Random): Promise<void> {
    if (ownDatabase) note('fail over database', await ownDatabase.failOver(random));
  }

  const done = Promise.all([
    // 200 to 600 ms, with a bias to longer pauses: a killed process must restart on the same few cores.
    every(1, (random) => 200 + Math.sqrt(random()) * 400, kill),
    every(2, (random) => 200 + random() * 500, stop),
    every(3, (random) => QUEUE_LOSS_EVERY_MS * (0.8 + random() * 0.4), loseQueue),
    every(4, (random) => RESET_EVERY_MS * (0.7 + random() * 0.6), reset),
    every(5, (random) => DATABASE_EVERY_MS * (0.7 + random() * 0.6), failOverDatabase),
  ]);
  return { faults, done: done.then(() => undefined) };
}

async function until(isSo: () => boolean, signal: AbortSignal): Promise<void> {
  while (!isSo() && !signal.aborted) await wait(20);
}

type Act = (random: Random) => Promise<void>;
