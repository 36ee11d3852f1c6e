import { cpSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openWorld, type WorldOptions, type WorldStage } from './world-stage.ts';
import { SMALL_WORLD, WHOLE_WORLD } from './world.ts';

export const WORLDS = 'node_modules/.cache/troupe-world';

export interface KeptOptions extends Pick<WorldOptions, 'port' | 'needsKey'> {
  seed?: number;
  isSmall?: boolean;
  /** Beginning of the folder's name. Default: `WORLDS`. */
  data?: string;
}

/** How long a world is kept, ms: its first approvals expire after four hours, and pages compare deadlines with the clock of the system. */
const KEPT_MS = 3 * 3_600_000;

/** A world that is played into a folder and opened from there for a few hours. */
export async function openKept({ seed = 1, isSmall = false, data = WORLDS, ...more }: KeptOptions = {}) {
  const size = isSmall ? SMALL_WORLD : WHOLE_WORLD;
  const folder = `${data}-${isSmall ? 'small-' : ''}${seed}`;
  const whole = join(folder, 'whole');
  const played = statSync(whole, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  const isPlayed = Date.now() - played < KEPT_MS;
  if (played > 0 && !isPlayed) {
    rmSync(whole);
    rmSync(join(folder, 'store'), { recursive: true });
  }
  mkdirSync(folder, { recursive: true });
  const began = performance.now();
  const told = (done: number) => process.stderr.write(`\r${done} of ${size.conversations} conversations`);
  const world = await openWorld({ data: join(folder, 'store'), isPlayed, seed, size, told, ...more });
  if (!isPlayed) {
    writeFileSync(whole, '');
    console.log(`\nplayed in ${Math.round((performance.now() - began) / 1_000)} s`);
  }
  return { folder, world };
}

/** A copy of the whole world that may be changed; it is removed at the end. */
export async function openCopied(options: Pick<KeptOptions, 'needsKey'> = {}): Promise<WorldStage> {
  const kept = await openKept();
  await kept.world[Symbol.asyncDispose]();
  const place = mkdtempSync(join(tmpdir(), 'troupe-world-'));
  cpSync(kept.folder, `${place}/world-1`, { recursive: true });
  const { world } = await openKept({ data: `${place}/world`, ...options });
  return {
    ...world,
    async [Symbol.asyncDispose]() {
      await world[Symbol.asyncDispose]();
      rmSync(place, { recursive: true, force: true });
    },
  };
}
