import { measureDistributed, measureEmbedded } from './scale/measure.ts';
import { tables } from './scale/model.ts';

/**
 * `npm run bench:scale` prints the tables of docs/contributing/scale.md, computed from the measured points of `bench/scale/points.ts`.
 * With `--measure` it counts these points again: on SQLite, and on MongoDB and Redis if MONGODB_URL and REDIS_URL are set.
 */
if (process.argv.includes('--measure')) {
  console.log('sqlite', JSON.stringify(await measureEmbedded()));
  const { MONGODB_URL: mongodb, REDIS_URL: redis } = process.env;
  if (mongodb && redis) console.log('mongodb', JSON.stringify(await measureDistributed({ mongodb, redis })));
} else console.log(tables());
