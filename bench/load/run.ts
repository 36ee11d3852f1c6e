import { cpus } from 'node:os';
import { createBench } from '../figures.ts';
import { measureFlood } from './flood.ts';
import { measureStreams } from './streams.ts';

/**
 * `npm run bench:load [-- --seconds 60 --json --only streams]`: what many readers and a flood of signatures cost, all of it
 * over sockets with keys. Exits with 1 if an event was lost or a goal missed.
 */
const argument = (name: string) => {
  const at = process.argv.indexOf(`--${name}`);
  return at < 0 ? undefined : process.argv[at + 1];
};
const json = process.argv.includes('--json');
const seconds = Number(argument('seconds') ?? 60);
const only = argument('only');
const FLOOD_SECONDS = 15;

const bench = createBench({ runs: 1, json });
if (!json) console.log(`Node ${process.version}, ${cpus().length} cores, ${seconds} s`);
if (only !== 'flood') await measureStreams(bench, { seconds });
if (only !== 'streams') await measureFlood(bench, { seconds: Math.min(seconds, FLOOD_SECONDS) });
if (json) console.log(JSON.stringify({ figures: bench.figures }));
process.exit(bench.figures.some(({ met }) => met === false) ? 1 : 0);
