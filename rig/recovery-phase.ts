import { setTimeout as wait } from 'node:timers/promises';
import { DEFAULT_TENANT, type ActorAddress } from '../src/events/index.ts';
import type { Store } from '../src/store/store.ts';
import type { Random } from '../test/support/engine-random.ts';
import type { Clients, Post } from './clients.ts';
import type { Fleet, Place } from './fleet.ts';
import { createRecovery, type Recovery } from './recovery.ts';
import type { WorkLog } from './work-log.ts';

/**
 * Measures recovery alone: no other faults, no backlog, a free place for every turn. Each round: all processes are
 * up; one message goes to each of `ASKED` new conversations; one worker is killed in the middle of their answers;
 * others take them up, and everything is answered. Requires a slow model.
 */
export interface RecoveryPhaseOptions {
  random: Random;
  fleet: Fleet;
  clients: Clients;
  work: WorkLog;
  store: Pick<Store, 'readActor'>;
  /** Starts rounds while there are fewer recoveries. */
  recoveries: number;
  /** Called just after a worker was killed. */
  onKill: (target: string) => void;
  say: (line: string) => void;
  /** Ends the watch of pending recoveries. It fires after this function, so that slow ones count. */
  ended: AbortSignal;
}

/** As many as the workers serve at once: each has work, and none waits for another. */
const ASKED = 12;
/** Number of conversations at the model before a worker is killed, and how long to wait for them. */
const AT_WORK = 10;
const AT_WORK_WITHIN_MS = 2_000;
/** Random delay before the kill, shorter than an answer. */
const KILL_WITHIN_MS = 700;
const LASTS_MS = 40_000;
const POLL_MS = 50;

export async function recoveryPhase(options: RecoveryPhaseOptions): Promise<Recovery> {
  const { fleet, store, recoveries, ended, say } = options;
  const recovery = createRecovery(store, ended, POLL_MS);
  const until = Date.now() + LASTS_MS;
  for (let round = 1; Date.now() < until && recovery.times.length < recoveries; round++) {
    await holds(() => fleet.places.every((place) => place.process?.state === 'up'), until);
    const known = recovery.times.length;
    const posts = await ask(options);
    const victim = await killOne(options, recovery);
    if (!victim) continue;
    await holds(() => recovery.open() === 0, until);
    for (const post of posts) await holds(() => isAnswered(store, post), until);
    const times = recovery.times.slice(known);
    const late = recovery.open() > 0 ? `, ${recovery.open()} not yet` : '';
    say(
      `recovery round ${round}: ${victim} killed, its turns taken up after ${times.join(', ') || '-'} ms${late}`,
    );
  }
  return recovery;
}

async function ask({ clients, work }: RecoveryPhaseOptions): Promise<Post[]> {
  const posts = Array.from({ length: ASKED }, () => clients.begin());
  await holds(() => work.all().length >= AT_WORK, Date.now() + AT_WORK_WITHIN_MS);
  return posts;
}

/** Null if no worker had work to break off. */
async function killOne(options: RecoveryPhaseOptions, recovery: Recovery): Promise<string | null> {
  const { random, fleet, work, onKill } = options;
  await wait(random() * KILL_WITHIN_MS);
  const places = fleet.places.filter((place) => brokenBy(place, work).length > 0);
  const place = places[Math.floor(random() * places.length)];
  if (!place) return null;
  recovery.watch(brokenBy(place, work), Date.now());
  const { name } = fleet.kill(place);
  onKill(`worker ${name}`);
  return name;
}

function brokenBy({ role, process: at }: Place, work: WorkLog) {
  return role === 'worker' && at?.state === 'up' ? work.of(at.name) : [];
}

async function isAnswered(store: RecoveryPhaseOptions['store'], { conversation, to, acked }: Post) {
  if (!acked) return false;
  const address = { tenant: DEFAULT_TENANT, conversation, agent: to[0] } as ActorAddress;
  const actor = await store.readActor(address).catch(() => null);
  return actor !== null && actor.turn === null && actor.processed >= acked.seq;
}

/** Resolves when the condition holds, at the latest at `until`. */
async function holds(isSo: () => boolean | Promise<boolean>, until: number): Promise<void> {
  while (!(await isSo()) && Date.now() < until) await wait(POLL_MS);
}
