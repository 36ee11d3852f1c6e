import { setImmediate as turnOfTheLoop } from 'node:timers/promises';
import { randomOf } from '../sim/random.ts';
import { shrink } from './shrink.ts';
import { Broken, checkPrototypes, type Target } from './target.ts';

/**
 * Runs inputs of one target. Input n of a seed is always the same, whatever ran before it; a target with state (a
 * server) may still answer it differently. Stops after `MOST_FINDINGS` different findings.
 */
export const HANG_MS = 100;
/** Wall time above which a run is repeated and its CPU time measured. */
const SUSPECT_MS = 40;
const REPEATS = 3;
const MOST_FINDINGS = 5;
const CHECK_EVERY = 2_000;
/** Synchronous targets yield to the event loop now and then, so that unhandled rejections are noticed. */
const BREATHE_EVERY = 256;

export interface Finding {
  kind: 'crash' | 'hang' | 'rejection' | Broken['kind'];
  input: number;
  message: string;
  smallest: unknown;
}

export interface Figures {
  target: string;
  inputs: number;
  parts: number;
  /** Refused inputs, by code. */
  codes: Record<string, number>;
  findings: Finding[];
  slowestMs: number;
  slowestInput: number;
  seconds: number;
}

export interface FuzzOptions {
  seed: number;
  inputs: number;
  /** The first input. Default 0. */
  from?: number | undefined;
  /** Maximum of different findings before it stops. */
  most?: number | undefined;
  onProgress?: ((done: number) => void) | undefined;
}

export async function fuzzTarget(
  target: Target,
  { seed, inputs, from = 0, most = target.whole ? Infinity : MOST_FINDINGS, onProgress }: FuzzOptions,
): Promise<Figures> {
  const began = performance.now();
  const figures: Figures = {
    target: target.name,
    inputs: 0,
    parts: 0,
    codes: {},
    findings: [],
    slowestMs: 0,
    slowestInput: from,
    seconds: 0,
  };
  let number = from;
  const onRejection = (reason: unknown) => add(figures, 'rejection', number, messageOf(reason), null);
  process.on('unhandledRejection', onRejection);
  try {
    for (; number < from + inputs && figures.findings.length < most; number++) {
      await runOne(target, seed, number, figures);
      if (number % BREATHE_EVERY === 0) await turnOfTheLoop();
      if (figures.inputs % CHECK_EVERY === 0) await checkState(target, number, figures);
      onProgress?.(figures.inputs);
    }
    await checkState(target, number - 1, figures);
    await turnOfTheLoop();
  } finally {
    process.off('unhandledRejection', onRejection);
  }
  figures.seconds = (performance.now() - began) / 1_000;
  return figures;
}

async function runOne(target: Target, seed: number, number: number, figures: Figures): Promise<void> {
  const input = target.make(randomOf(seed, `${target.name}/${number}`));
  figures.inputs += 1;
  figures.parts += target.parts?.(input) ?? 1;
  const start = performance.now();
  try {
    const code = await target.run(input);
    checkPrototypes();
    figures.codes[code] = (figures.codes[code] ?? 0) + 1;
  } catch (thrown) {
    const message = messageOf(thrown);
    if (figures.findings.some((known) => shapeOf(known.message) === shapeOf(message))) return;
    const smallest = target.whole
      ? input
      : await shrink(
          input,
          async (smaller) => shapeOf(await failure(target, smaller)) === shapeOf(message),
          target.keepKeys,
        );
    add(figures, thrown instanceof Broken ? thrown.kind : 'crash', number, message, smallest);
    return;
  }
  let ms = performance.now() - start;
  if (ms > SUSPECT_MS) ms = Math.min(ms, await holdMs(target, input));
  if (ms <= figures.slowestMs) return;
  figures.slowestMs = ms;
  figures.slowestInput = number;
  if (ms <= HANG_MS) return;
  const smallest = await shrink(
    input,
    async (smaller) => (await holdMs(target, smaller)) > HANG_MS,
    target.keepKeys,
  );
  add(figures, 'hang', number, `held the event loop for ${Math.round(ms)} ms`, smallest);
}

/**
 * The longest time an input blocked the event loop, in CPU time of this thread, because other processes use the
 * machine. The least of a few repetitions, since the first one also compiles.
 */
async function holdMs(target: Target, input: unknown): Promise<number> {
  let least = Infinity;
  for (let time = 0; time < REPEATS; time++) least = Math.min(least, await holdOnce(target, input));
  return least;
}

async function holdOnce(target: Target, input: unknown): Promise<number> {
  let longest = 0;
  let before = threadMs();
  let isOver = false;
  const note = () => {
    const now = threadMs();
    longest = Math.max(longest, now - before);
    before = now;
  };
  const watching = (async () => {
    while (!isOver) {
      await turnOfTheLoop();
      note();
    }
  })();
  await failure(target, input);
  note();
  isOver = true;
  await watching;
  return longest;
}

function threadMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}

async function failure(target: Target, input: unknown): Promise<string> {
  try {
    await target.run(input);
    return '';
  } catch (thrown) {
    return messageOf(thrown);
  }
}

async function checkState(target: Target, number: number, figures: Figures): Promise<void> {
  try {
    await target.check?.();
  } catch (thrown) {
    add(figures, thrown instanceof Broken ? thrown.kind : 'crash', number, messageOf(thrown), null);
  }
}

function add(
  { findings }: Figures,
  kind: Finding['kind'],
  input: number,
  message: string,
  smallest: unknown,
): void {
  findings.push({ kind, input, message, smallest });
}

/** The message without the parts that differ between inputs. */
function shapeOf(message: string): string {
  return (message.split('\n')[0] ?? '').replace(/"[^"]*"|(?<!:)\b\d+/g, '#').slice(0, 80);
}

const FRAMES = 4;

function messageOf(thrown: unknown): string {
  if (thrown instanceof Broken) return thrown.message;
  if (!(thrown instanceof Error)) return `threw ${String(thrown)}`;
  return [`${thrown.name}: ${thrown.message}`, ...(thrown.stack ?? '').split('\n').slice(1, 1 + FRAMES)].join(
    '\n',
  );
}
