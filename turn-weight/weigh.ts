import { createTroupe } from '../src/index.ts';
import { createFakeClock } from '../packages/testing/src/fake-clock.ts';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Coverage, Ran } from './coverage.ts';
import { nameOf } from './function-names.ts';
import type { Door, Scene } from './scene.ts';
import type { SqliteCalls } from './sqlite-calls.ts';

/** What a turn costs, counted. */
export interface Weight {
  files: number;
  functions: number;
  calls: number;
  statements: number;
  transactions: number;
  synced: number;
}

export interface Weighed {
  scene: string;
  weight: Weight;
  /** Calls of each function, by file and name: `store/store.ts createStore.append`. */
  functions: Map<string, number>;
  /** What SQLite was told, in order. */
  statements: string[];
  elsewhere: { packages: number; node: number };
}

setFlagsFromString('--expose-gc');
/** Node's own work after a collection would be counted with whatever turn it falls into. */
const collectGarbage = runInNewContext('gc') as () => void;

/** Odd: the median of counts is one of them. */
const CONVERSATIONS = 3;
/** Turns of a conversation before the one that is weighed: it is behind ten messages. */
export const BEFORE = 5;
/** Checks that nothing happens any more. */
const QUIET_CHECKS = 25;
/** Within it what a turn has put off is done; no lease is renewed and no sweep begins. */
const PUT_OFF_MS = 1_000;

export interface Opened {
  door: Door;
  /** Runs a turn and waits until all that it has caused is done. */
  settle(): Promise<void>;
  close(): Promise<void>;
}

/** A warm company on a database in a file. Its clock stands: no time of this process changes what a turn does. */
export async function openScene(scene: Scene, activity: () => number): Promise<Opened> {
  const folder = mkdtempSync(path.join(tmpdir(), 'troupe-weigh-'));
  const clock = createFakeClock();
  const troupe = await createTroupe(scene.company, {
    data: folder,
    clock,
    onWarning(error, where) {
      throw new Error(`${scene.name}: ${where}: ${String(error)}`);
    },
  });
  const door = await scene.open({ troupe, clock });

  async function quiet(): Promise<void> {
    let seen = activity();
    for (let checks = 0; checks < QUIET_CHECKS; checks++) {
      await new Promise((resolve) => setImmediate(resolve));
      const now = activity();
      if (now !== seen) checks = 0;
      seen = now;
    }
  }

  return {
    door,
    async settle() {
      await quiet();
      await clock.advance(PUT_OFF_MS);
      await quiet();
    },
    async close() {
      await door.close?.();
      await troupe.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Counts the sixth turn of several conversations, and takes the median of each count. */
export async function weighScene(
  scene: Scene,
  coverage: Coverage,
  sqlite: { take: () => SqliteCalls; count: () => number },
): Promise<Weighed> {
  const opened = await openScene(scene, sqlite.count);
  try {
    // One conversation more than is weighed: the first loads what is loaded once.
    const rounds: Round[] = [];
    for (let index = 0; index <= CONVERSATIONS; index++) {
      const room = await opened.door.enter(`room-${index}`);
      for (let turn = 0; turn < BEFORE; turn++) {
        await room.turn(`Message ${turn}, please note it.`);
        await opened.settle();
      }
      collectGarbage();
      await opened.settle();
      await coverage.take();
      sqlite.take();
      await room.turn(`Message ${BEFORE}, please note it.`);
      await opened.settle();
      const calls = sqlite.take();
      rounds.push({ ...(await coverage.take()), calls });
      await room.leave?.();
    }
    return sumUp(scene.name, rounds.slice(1));
  } finally {
    await opened.close();
  }
}

interface Round {
  functions: Ran[];
  elsewhere: { packages: number; node: number };
  calls: SqliteCalls;
}

function sumUp(scene: string, rounds: readonly Round[]): Weighed {
  const byPlace = new Map<string, { ran: Ran; counts: number[] }>();
  for (const { functions } of rounds)
    for (const ran of functions) {
      const place = `${ran.file}:${ran.start}:${ran.end}`;
      const entry = byPlace.get(place) ?? { ran, counts: [] };
      entry.counts.push(ran.calls);
      byPlace.set(place, entry);
    }
  const functions = new Map<string, number>();
  const files = new Set<string>();
  let all = 0;
  for (const { ran, counts } of byPlace.values()) {
    const calls = median([...counts, ...Array<number>(rounds.length - counts.length).fill(0)]);
    if (calls === 0) continue;
    all += 1;
    files.add(ran.file);
    const name = `${ran.file} ${nameOf(ran)}`;
    functions.set(name, (functions.get(name) ?? 0) + calls);
  }
  const of = (count: (round: Round) => number) => median(rounds.map(count));
  const statements = of(({ calls }) => calls.statements);
  return {
    scene,
    weight: {
      files: files.size,
      functions: all,
      calls: [...functions.values()].reduce((sum, calls) => sum + calls, 0),
      statements,
      transactions: of(({ calls }) => calls.transactions),
      synced: of(({ calls }) => calls.synced),
    },
    functions: new Map([...functions].toSorted(([a], [b]) => (a < b ? -1 : 1))),
    statements: rounds.find(({ calls }) => calls.statements === statements)?.calls.texts ?? [],
    elsewhere: {
      packages: of(({ elsewhere }) => elsewhere.packages),
      node: of(({ elsewhere }) => elsewhere.node),
    },
  };
}

export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}
