import { randomOf } from '/work/main/test/support/engine-random.ts';
import { openWorld } from '/work/main/test/support/engine-world.ts';
const [seed, runs, plan] = [Number(process.argv[2]), Number(process.argv[3]), JSON.parse(process.argv[4]!)];
for (let run = 0; run < runs; run++) {
  const t = performance.now();
  const world = await openWorld({ ...plan, random: randomOf(seed + run) });
  for (let i = 0; i < 40; i++) await world.act();
  const t1 = performance.now();
  const took = await world.settle();
  const v = await world.violations();
  console.log(seed + run, Math.round(t1 - t), Math.round(performance.now() - t1), took, JSON.stringify(world.stats), v.slice(0, 4));
}
