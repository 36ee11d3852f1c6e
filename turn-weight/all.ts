import type { Coverage } from './coverage.ts';
import { DOORS } from './doors.ts';
import type { SqliteWatch } from './sqlite-calls.ts';
import { TURNS } from './turns.ts';
import { type Weighed, weighScene } from './weigh.ts';

const SCENES = [...TURNS, ...DOORS];
export const SCENE_NAMES = SCENES.map(({ name }) => name);

/** Weighs these scenes, each in a company of its own, in a fixed order. */
export async function weighScenes(
  names: readonly string[],
  coverage: Coverage,
  sqlite: SqliteWatch,
): Promise<Weighed[]> {
  const weighed: Weighed[] = [];
  for (const scene of SCENES)
    if (names.includes(scene.name)) weighed.push(await weighScene(scene, coverage, sqlite));
  return weighed;
}
