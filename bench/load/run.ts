import { cpus } from 'node:os';
import { createBench } from '../figures.ts';
import { measureCrowd } from './crowd.ts';
import { measureDoors } from './doors.ts';
import { measureFlood } from './flood.ts';
import { measureStreams } from './streams.ts';

/**
 * `npm run bench:load [-- --seconds 60 --events 1000000 --json --only streams
 * flood
 * crowd
 * doors]`: the cost of many readers, a flood of signatures, ten thousand streams and a million tiny events, and of many
 * readers by the doors, all over sockets with keys. Exit code 1 if an event was lost or a goal was missed.
 */
const argument = (name: string) => {
  const at = process.argv.indexOf(`--${name}`);
  return at < 0 ? undefined : process.argv[at + 1];
};
const json = process.argv.includes('--json');
const seconds = Number(argument('seconds') ?? 60);
const events = Number(argument('events') ?? 1_000_000);
const only = argument('only');
const FLOOD_SECONDS = 15;

const bench = createBench({ runs: 1, json });
if (!json) console.log(`Node ${process.version}, ${cpus().length} cores, ${seconds} s`);
if (!only || only === 'streams') await measureStreams(bench, { seconds });
if (!only || only === 'flood') await measureFlood(bench, { seconds: Math.min(seconds, FLOOD_SECONDS) });
if (!only || only === 'crowd') await measureCrowd(bench, { events });
if (!only || only === 'doors') await measureDoors(bench);
if (json) console.log(JSON.stringify({ figures: bench.figures }));
process.exit(bench.figures.some(({ met }) => met === false) ? 1 : 0);
