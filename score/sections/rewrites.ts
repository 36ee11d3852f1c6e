import type { Event } from '../../src/events/index.ts';
import { HAS_DATA } from '../../test/support/real-logs.ts';
import { chained, DATA_FILES, namedLogs, NO_DATA, SESSION } from '../data-files.ts';
import { atLeast, atMost, figure, type Figure, type Goal, type Scored } from '../figure.ts';
import type { Options } from '../options.ts';
import { measureRewrites, type Rewrites } from '../rewrites.ts';
import { timedLog } from '../timed-log.ts';

const WINDOWS = [8_000, 16_000, 32_000, 64_000, 128_000, 200_000];
/** Every log is repeated until it is this many windows long, the session longer than the others. */
const TIMES = { session: 6, others: 2 };
const KEPT_ROUNDS = 3;
const KEPT_TOKENS = 20_000;
/** In a small window the newest messages have at least this part of the room up to the target. */
const KEPT_SHARE = 0.6;
const LARGE = 64_000;
const MOST_DISTANCE = 0.1;
const LEAST_GAIN = 0.2;

/** What stays verbatim after a compaction, and what a rewrite gains, on every real log in windows of all sizes. */
export async function scoreRewrites({ quick, note }: Options): Promise<Scored> {
  if (!HAS_DATA) return { figures: [], violations: [], skipped: NO_DATA };
  const logs: { name: string; log: readonly Event[] }[] = [];
  for (const file of quick ? [SESSION] : DATA_FILES) {
    const some =
      file === SESSION ? [await timedLog(file)] : (await namedLogs(file, false)).map(([, log]) => log);
    logs.push({ name: file, log: some.flat() });
  }
  const figures: Figure[] = [];
  for (const window of WINDOWS) {
    note(`${window} tokens`);
    const all: Rewrites[] = [];
    for (const { name, log } of logs) {
      const cache = name === SESSION;
      const long = repeated(log, window * (cache ? TIMES.session : TIMES.others));
      const one = measureRewrites(long, { window, cache });
      all.push(one);
      if (cache) figures.push(...sessionFigures(window, one));
    }
    figures.push(...windowFigures(window, all));
  }
  return { figures, violations: [] };
}

function repeated(log: readonly Event[], tokens: number): Event[] {
  const size = log.reduce((sum, event) => sum + event.tokens, 0);
  return chained([log], Math.ceil((log.length * tokens) / Math.max(1, size)));
}

const HIT_GOALS: Readonly<Record<number, Goal>> = {
  32_000: atLeast(0.95),
  128_000: atLeast(0.98),
  200_000: atLeast(0.98),
};

function sessionFigures(window: number, { requests, rewrites, hitRate }: Rewrites): Figure[] {
  return [
    figure(
      `${window / 1_000}k, the coding session: input read from the cache`,
      hitRate ?? NaN,
      'share',
      HIT_GOALS[window],
    ),
    figure('  rewrites per 100 requests', (rewrites.length / requests) * 100, 'ratio'),
  ];
}

function windowFigures(window: number, all: readonly Rewrites[]): Figure[] {
  const rewrites = all.flatMap((one) => one.rewrites);
  const compactions = rewrites.filter(({ kind, trims }) => kind === 'compaction' && !trims);
  const wasteful = compactions.filter(({ wastes }) => wastes);
  const poor = wasteful.filter(({ rounds, tokens, room }) => {
    const kept = window >= LARGE ? KEPT_TOKENS : room * KEPT_SHARE;
    return rounds < KEPT_ROUNDS && tokens < kept;
  });
  const far = wasteful.filter(({ distance }) => distance > MOST_DISTANCE);
  const small = rewrites.filter(({ gain, fitted }) => fitted && gain < LEAST_GAIN);
  const least = (values: readonly number[]) => values.reduce((a, b) => Math.min(a, b), Infinity);
  const name = `${window / 1_000}k, every log`;
  return [
    figure(`${name}: compactions`, compactions.length, 'count'),
    figure('  prunes', rewrites.filter(({ kind }) => kind === 'prune').length, 'count'),
    figure('  running turns shortened', rewrites.filter(({ trims }) => trims).length, 'count'),
    figure('  too little verbatim, though there was room', poor.length, 'count', atMost(0)),
    figure('  tokens verbatim, at least', least(compactions.map(({ tokens }) => tokens)), 'tokens'),
    figure('  rounds verbatim, at least', least(compactions.map(({ rounds }) => rounds)), 'count'),
    figure('  over 10 % off the target, though there was more to keep', far.length, 'count', atMost(0)),
    figure('  mean distance from the target', mean(compactions.map(({ distance }) => distance)), 'share'),
    figure(
      '  rewrites that gain under a fifth of the room, though the request fitted',
      small.length,
      'count',
      atMost(0),
    ),
    figure('  smallest gain', least(rewrites.map(({ gain }) => gain)), 'share'),
  ];
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
