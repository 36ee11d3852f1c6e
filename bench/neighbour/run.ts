import { fork } from 'node:child_process';
import { once } from 'node:events';
import { cpus } from 'node:os';
import { fileURLToPath } from 'node:url';
import { type Bench, createBench } from '../figures.ts';
import { percentile } from '../support.ts';
import { type Felt, listenAsCalm } from './calm-tenant.ts';
import { isNoise, type Noise, NOISES } from './noises.ts';
import { type Mode, MODES, startSystem } from './system.ts';

/**
 * `npm run bench:neighbour [-- --seconds 20 --only flood

 * reads
 * stream --mode embedded
 * distributed --json]`: the effect of one tenant's noise on another. Each kind of noise gets a fresh system, which is
 * measured without noise first. Exit code 1 if a goal is missed.
 */
const argument = (name: string) => {
  const at = process.argv.indexOf(`--${name}`);
  return at < 0 ? undefined : process.argv[at + 1];
};
const json = process.argv.includes('--json');
const seconds = Number(argument('seconds') ?? 20);
const only = argument('only');
const mode = argument('mode');
const WARM_UP_SECONDS = 3;
const TIMES = 2;

if (only !== undefined && !isNoise(only)) throw new Error(`--only: one of ${Object.keys(NOISES).join(', ')}`);
const bench = createBench({ runs: 1, json });
if (!json) console.log(`Node ${process.version}, ${cpus().length} cores, ${seconds} s each`);
const model = await startEndlessModel();
for (const each of MODES.filter((name) => mode === undefined || name === mode)) {
  for (const noise of Object.keys(NOISES) as Noise[])
    if (only === undefined || only === noise) await measureNoise(bench, each, noise);
}
model.stop();
if (json) console.log(JSON.stringify({ figures: bench.figures }));
process.exit(bench.figures.some(({ met }) => met === false) ? 1 : 0);

async function measureNoise({ heading, add }: Bench, where: Mode, noise: Noise): Promise<void> {
  const system = await startSystem(where, model.url);
  try {
    await listenAsCalm(system, { seconds: WARM_UP_SECONDS });
    const quiet = await listenAsCalm(system, { seconds });
    const noisy = await startNoise(noise, {
      url: system.url,
      keys: system.keys,
      noisyKeys: system.noisyKeys,
    });
    await listenAsCalm(system, { seconds: WARM_UP_SECONDS });
    const loud = await listenAsCalm(system, { seconds });
    noisy.stop();
    heading(`${where}: ${NOISES[noise]}`);
    addPair('append', 'appends', { quiet, loud });
    addPair('answer', 'answers', { quiet, loud });
    add('messages not answered', loud.unanswered, 'messages', { atMost: 0 });
    add('messages not taken', loud.refused, 'messages', { atMost: 0 });
    add('processes that ended by themselves', system.hasFailed() ? 1 : 0, 'or more', { atMost: 0 });
  } finally {
    await system.stop();
  }

  function addPair(what: string, key: 'appends' | 'answers', felt: { quiet: Felt; loud: Felt }): void {
    const [quiet, loud] = [felt.quiet, felt.loud].map((each) => percentile(each[key], 0.99)) as [
      number,
      number,
    ];
    add(`${what} while quiet: p50`, percentile(felt.quiet[key], 0.5), 'ms');
    add(`${what} while quiet: p99`, quiet, 'ms');
    add(`${what} beside the noise: p50`, percentile(felt.loud[key], 0.5), 'ms');
    add(`${what} beside the noise: p99`, loud, 'ms');
    const medians = [felt.quiet, felt.loud].map((each) => percentile(each[key], 0.5)) as [number, number];
    add(`${what}: p50 beside the noise`, medians[1] / medians[0], 'times', { atMost: TIMES });
    add(`${what}: p99 beside the noise`, loud / quiet, 'times', { atMost: TIMES });
  }
}

async function startNoise(noise: Noise, serving: object): Promise<{ stop(): void }> {
  const script = fileURLToPath(new URL('./noise-process.ts', import.meta.url));
  const child = fork(script, [noise, JSON.stringify(serving)]);
  const failed = once(child, 'exit').then(() => Promise.reject(new Error(`the noise "${noise}" ended`)));
  await Promise.race([once(child, 'message'), failed]);
  failed.catch(() => {});
  return { stop: () => void child.kill('SIGKILL') };
}

async function startEndlessModel(): Promise<{ url: string; stop(): void }> {
  const child = fork(fileURLToPath(new URL('./endless-model.ts', import.meta.url)));
  const [url] = (await once(child, 'message')) as [string];
  return { url, stop: () => void child.kill('SIGKILL') };
}
