import { execFileSync } from 'node:child_process';
import { cpus } from 'node:os';
import { fileURLToPath } from 'node:url';

/**
 * `npm run bench`: every figure is the median of fresh processes, beside its floor in the same run. Machines are shared
 * and noisy: read the ratios. `--json` prints one object; `--runs N` (default 5) changes the number of processes.
 */
interface Figure {
  name: string;
  value: number;
  unit: string;
  goal: string;
  met: boolean | null;
}

const json = process.argv.includes('--json');
const RUNS = Number(argument('--runs') ?? 5);

function argument(name: string): string | undefined {
  const at = process.argv.indexOf(name);
  return at < 0 ? undefined : process.argv[at + 1];
}

function measure(script: string, ...args: string[]): Record<string, number> {
  const path = fileURLToPath(new URL(`./${script}.ts`, import.meta.url));
  const runs = Array.from({ length: RUNS }, (_, index) => {
    if (process.stderr.isTTY)
      process.stderr.write(`\r\u001b[K${script} ${args.join(' ')} ${index + 1}/${RUNS}`);
    const output = execFileSync(process.execPath, ['--expose-gc', path, ...args], {
      encoding: 'utf8',
      timeout: 120_000,
    });
    return JSON.parse(output.trim().split('\n').at(-1) ?? '{}') as Record<string, number>;
  });
  if (process.stderr.isTTY) process.stderr.write('\r\u001b[K');
  const keys = Object.keys(runs[0] ?? {});
  return Object.fromEntries(keys.map((key) => [key, median(runs.map((run) => run[key] ?? Number.NaN))]));
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}

const figures: Figure[] = [];

function add(name: string, value: number | undefined, unit: string, atMost?: number, atLeast?: number): void {
  const number = value ?? Number.NaN;
  const goal = atMost !== undefined ? `<= ${atMost}` : atLeast !== undefined ? `>= ${atLeast}` : '';
  const met = atMost !== undefined ? number <= atMost : atLeast !== undefined ? number >= atLeast : null;
  const figure = { name, value: number, unit, goal, met };
  figures.push(figure);
  if (!json) print(figure);
}

function print({ name, value, unit, goal, met }: Figure): void {
  const shown = Math.abs(value) >= 100 ? value.toFixed(0) : value.toFixed(value < 0.1 ? 4 : 2);
  const verdict = met === null ? '' : met ? 'ok' : 'MISSED';
  console.log(`${name.padEnd(62)} ${shown.padStart(9)} ${unit.padEnd(9)} ${goal.padEnd(9)} ${verdict}`);
}

if (!json)
  console.log(`Node ${process.version}, ${cpus().length} cores, medians of ${RUNS} fresh processes\n`);

const small = measure('turn-latency', '10');
const large = measure('turn-latency', '10000');
const bareSmall = measure('bare-sqlite-latency', '10');
const bareLarge = measure('bare-sqlite-latency', '10000');
const arrayLarge = measure('bare-array', '10000');
const p50 = { small: small['p50'] ?? Number.NaN, large: large['p50'] ?? Number.NaN };
add('turn, 10 events before: p50', p50.small, 'ms', 2);
add('turn, 10,000 events before: p50', p50.large, 'ms', 3);
add('  ratio 10,000 : 10', p50.large / p50.small, 'x', 1.5);
add('  p99 : p50 at 10', (small['p99'] ?? Number.NaN) / p50.small, 'x', 4);
add('  p99 : p50 at 10,000', (large['p99'] ?? Number.NaN) / p50.large, 'x', 4);
add('  bare SQLite loop at 10', bareSmall['p50'], 'ms');
add('  bare SQLite loop at 10,000', bareLarge['p50'], 'ms');
add('  bare message array at 10,000', arrayLarge['p50'], 'ms');
add('  Troupe : bare SQLite at 10', p50.small / (bareSmall['p50'] ?? Number.NaN), 'x');
add('  Troupe : bare SQLite at 10,000', p50.large / (bareLarge['p50'] ?? Number.NaN), 'x');

const storedSmall = measure('storage', '10');
const storedLarge = measure('storage', '10000');
add('stored per turn, 10 events before', storedSmall['bytesPerTurn'], 'B', 4_000);
add('stored per turn, 10,000 events before', storedLarge['bytesPerTurn'], 'B', 4_000);
add('memory growth over 60 turns at 10,000 events', storedLarge['rssGrowthMb'], 'MB', 10);

const throughput = measure('throughput');
const bareThroughput = measure('bare-throughput');
add('1,000 conversations x 3 turns, 64 at once', throughput['turnsPerSecond'], 'turns/s', undefined, 3_000);
add('  bare SQLite loop', bareThroughput['turnsPerSecond'], 'turns/s');

const append = measure('append');
add('appends, many at once', append['together'], 'events/s', undefined, 5_000);
add('appends, one after the other', append['oneByOne'], 'events/s');
add('  bare SQLite loop', append['bareOneByOne'], 'events/s');

const company = measure('company');
add('1,000 agents in one conversation: answered', company['answered'], 'agents', undefined, 1_000);
add('  time', company['seconds'], 's');

const memory = measure('idle-memory');
add('heap per warm actor', memory['warmKbPerActor'], 'kB');
add('heap per idle actor', memory['idleKbPerActor'], 'kB', 0.5);

const rally = measure('hand-overs');
add('two agents handing over for 50 turns: turns', rally['turns'], 'turns', undefined, 50);
add('  model calls', rally['calls'], 'calls', 50);
add('  events twice in a prompt', rally['eventsTwice'], 'events', 0);

const cold = measure('cold-start');
add('troupe dev: ready', cold['readyMs'], 'ms');
add('troupe dev: first prompt built', cold['firstPromptMs'], 'ms', 1_500);

if (json) console.log(JSON.stringify({ node: process.version, runs: RUNS, figures }));
const missed = figures.filter(({ met }) => met === false);
if (missed.length > 0 && !json) console.log(`\n${missed.length} goal(s) missed on this run.`);
