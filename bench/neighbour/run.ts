import { fork } from 'node:child_process';
import { once } from 'node:events';
import { constants, cpus, loadavg, setPriority } from 'node:os';
import { fileURLToPath } from 'node:url';
import { type Bench, createBench, median } from '../figures.ts';
import { percentile } from '../support.ts';
import { type Felt, listenAsCalm } from './calm-tenant.ts';
import { isNoise, type Noise, NOISES } from './noises.ts';
import { type Mode, MODES, startSystem, type System } from './system.ts';
import { askUsage, type Usage } from './usage.ts';

/**
 * `npm run bench:neighbour [-- --seconds 20 --runs 3 --only flood

 * reads
 * stream --mode embedded
 * distributed --json]`: the effect of one tenant's noise on another. Each run of each kind of noise gets fresh systems, which are
 * measured without noise first. Exit code 1 if a goal is missed.
 *
 * Noise also takes processor time from everything on the machine. To tell that apart, the calm tenant uses a second system,
 * the control, at the same time: it gets no noise, and shares the machine (distributed: and the servers of the database and Redis).
 */
const argument = (name: string) => {
  const at = process.argv.indexOf(`--${name}`);
  return at < 0 ? undefined : process.argv[at + 1];
};
const json = process.argv.includes('--json');
const seconds = Number(argument('seconds') ?? 20);
const runs = Number(argument('runs') ?? 1);
const only = argument('only');
const mode = argument('mode');
const WARM_UP_SECONDS = 3;
const TIMES = 2;

if (only !== undefined && !isNoise(only)) throw new Error(`--only: one of ${Object.keys(NOISES).join(', ')}`);
const bench = createBench({ runs, json });
if (!json)
  console.log(
    `Node ${process.version}, ${cpus().length} cores, load ${loadavg()[0]?.toFixed(1)}, ${seconds} s each, medians of ${runs}`,
  );
const model = await startEndlessModel();
for (const each of MODES.filter((name) => mode === undefined || name === mode)) {
  for (const noise of Object.keys(NOISES) as Noise[])
    if (only === undefined || only === noise) await measureNoise(bench, each, noise);
}
model.stop();
if (json) console.log(JSON.stringify({ figures: bench.figures }));
process.exit(bench.figures.some(({ met }) => met === false) ? 1 : 0);

/** What the calm tenant experiences, once in each run. */
interface Run {
  quiet: Felt;
  beside: Felt;
  /** On the system without noise, at the same time as `beside`. */
  control: Felt;
  server: Usage;
  noise: Usage;
  hasFailed: boolean;
}

async function measureNoise({ heading, add }: Bench, where: Mode, noise: Noise): Promise<void> {
  const found: Run[] = [];
  for (let run = 0; run < runs; run++) found.push(await measureOnce(where, noise));
  const middle = (of: (run: Run) => number) => median(found.map(of));
  const most = (of: (run: Run) => number) => Math.max(...found.map(of));

  heading(`${where}: ${NOISES[noise]}`);
  for (const [what, key] of [
    ['append', 'appends'],
    ['answer', 'answers'],
  ] as const) {
    for (const [name, p] of [
      ['p50', 0.5],
      ['p99', 0.99],
    ] as const) {
      const of = (felt: Felt) => percentile(felt[key], p);
      add(
        `${what} while quiet: ${name}`,
        middle(({ quiet }) => of(quiet)),
        'ms',
      );
      add(
        `${what} beside the noise: ${name}`,
        middle(({ beside }) => of(beside)),
        'ms',
      );
      add(
        `${what} on the control meanwhile: ${name}`,
        middle(({ control }) => of(control)),
        'ms',
      );
      const goal = { atMost: TIMES };
      add(
        `${what}: ${name} over quiet`,
        middle(({ beside, quiet }) => of(beside) / of(quiet)),
        'times',
        goal,
      );
      add(
        `${what}: ${name} over the control`,
        middle(({ beside, control }) => of(beside) / of(control)),
        'times',
      );
    }
  }
  add(
    'processor time of the API process',
    middle(({ server }) => server.cores),
    'cores',
  );
  add(
    'processor time of the noise itself',
    middle(({ noise }) => noise.cores),
    'cores',
  );
  add(
    'delay of the event loop of the API process: p50',
    middle(({ server }) => server.loopP50Ms),
    'ms',
  );
  add(
    'delay of the event loop of the API process: p99',
    middle(({ server }) => server.loopP99Ms),
    'ms',
  );
  add(
    'messages not answered',
    most(({ beside }) => beside.unanswered),
    'messages',
    { atMost: 0 },
  );
  add(
    'messages not taken',
    most(({ beside }) => beside.refused),
    'messages',
    { atMost: 0 },
  );
  add(
    'processes that ended by themselves',
    most(({ hasFailed }) => (hasFailed ? 1 : 0)),
    'or more',
    { atMost: 0 },
  );
}

async function measureOnce(where: Mode, noise: Noise): Promise<Run> {
  const [system, other] = await Promise.all([startSystem(where, model.url), startSystem(where, model.url)]);
  try {
    await listenTo(system, other, WARM_UP_SECONDS);
    const [quiet] = await listenTo(system, other, seconds);
    const noisy = await startNoise(noise, {
      url: system.url,
      keys: system.keys,
      noisyKeys: system.noisyKeys,
    });
    await listenTo(system, other, WARM_UP_SECONDS);
    await Promise.all([system.usage(), noisy.usage()]);
    const [beside, control] = await listenTo(system, other, seconds);
    const [server, usage] = await Promise.all([system.usage(), noisy.usage()]);
    noisy.stop();
    return { quiet, beside, control, server, noise: usage, hasFailed: system.hasFailed() };
  } finally {
    await Promise.all([system.stop(), other.stop()]);
  }
}

function listenTo(system: System, other: System, forSeconds: number): Promise<[Felt, Felt]> {
  return Promise.all([
    listenAsCalm(system, { seconds: forSeconds }),
    listenAsCalm(other, { seconds: forSeconds, isOffBeat: true }),
  ]);
}

async function startNoise(noise: Noise, serving: object): Promise<{ usage(): Promise<Usage>; stop(): void }> {
  const script = fileURLToPath(new URL('./noise-process.ts', import.meta.url));
  const child = fork(script, [noise, JSON.stringify(serving)]);
  // Noise comes from other machines: here it gets the processor time that is left.
  setPriority(child.pid ?? 0, constants.priority.PRIORITY_LOW);
  const failed = once(child, 'exit').then(() => Promise.reject(new Error(`the noise "${noise}" ended`)));
  await Promise.race([once(child, 'message'), failed]);
  failed.catch(() => {});
  return { usage: () => askUsage(child), stop: () => void child.kill('SIGKILL') };
}

async function startEndlessModel(): Promise<{ url: string; stop(): void }> {
  const child = fork(fileURLToPath(new URL('./endless-model.ts', import.meta.url)));
  const [url] = (await once(child, 'message')) as [string];
  return { url, stop: () => void child.kill('SIGKILL') };
}
