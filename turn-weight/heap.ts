import { getHeapStatistics } from 'node:v8';
import { DOORS } from './doors.ts';
import { TURNS } from './turns.ts';
import { BEFORE, median, openScene } from './weigh.ts';

/**
 * Bytes of heap that a turn allocates, as JSON by scene. Arguments: names of scenes. Needs `--expose-gc` and a young generation
 * that holds all of a round, so that nothing is collected in between.
 */
const WARM_UP = 40;
const MEASURED = 31;

const bytes: Record<string, number> = {};
for (const scene of [...TURNS, ...DOORS])
  if (process.argv.includes(scene.name)) bytes[scene.name] = await allocated(scene);
process.stdout.write(JSON.stringify(bytes), () => process.exit());

/** The median over conversations of what the sixth turn allocates: single turns in which V8 compiles do not count. */
async function allocated(scene: Parameters<typeof openScene>[0]): Promise<number> {
  const opened = await openScene(scene, () => 0);
  const sizes: number[] = [];
  for (let index = 0; index < WARM_UP + MEASURED; index++) {
    const room = await opened.door.enter(`room-${index}`);
    for (let turn = 0; turn < BEFORE; turn++) {
      await room.turn(`Message ${turn}, please note it.`);
      await opened.settle();
    }
    globalThis.gc?.({ type: 'minor' });
    const before = getHeapStatistics().used_heap_size;
    await room.turn(`Message ${BEFORE}, please note it.`);
    await opened.settle();
    const after = getHeapStatistics().used_heap_size;
    await opened.settle();
    // Waiting allocates, too.
    const waited = getHeapStatistics().used_heap_size - after;
    sizes.push(after - before - waited);
    await room.leave?.();
  }
  await opened.close();
  return median(sizes.slice(WARM_UP));
}
