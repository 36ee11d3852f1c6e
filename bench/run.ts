import { cpus } from 'node:os';
import { measureDistributed } from './distributed.ts';
import { measureEmbedded } from './embedded.ts';
import { createBench } from './figures.ts';

/**
 * `npm run bench`: every figure is the median of fresh processes, next to its floor from the same run. Machines are
 * shared and noisy: compare the ratios. `--embedded` or `--distributed` runs one half; `--json` prints one object;
 * `--runs N` (default 3) sets the number of processes. docs/contributing/benchmarks.md explains the figures.
 */
const given = process.argv.slice(2);
const json = given.includes('--json');
const runs = given.includes('--runs') ? Number(given[given.indexOf('--runs') + 1]) : 3;
const halves = ['--embedded', '--distributed'].filter((half) => given.includes(half));
const isWanted = (half: string) => halves.length === 0 || halves.includes(half);

const bench = createBench({ runs, json });
if (!json) console.log(`Node ${process.version}, ${cpus().length} cores, medians of ${runs} fresh processes`);
if (isWanted('--embedded')) measureEmbedded(bench);
if (isWanted('--distributed')) measureDistributed(bench);

const { figures, skipped } = bench;
if (json) console.log(JSON.stringify({ node: process.version, runs, figures, skipped }));
const missed = figures.filter(({ met }) => met === false);
if (missed.length > 0 && !json) console.log(`\n${missed.length} goal(s) missed on this run.`);
