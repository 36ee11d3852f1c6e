import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import type { FirstTurn } from '../cold/first-turn.ts';
import { atMost, type Figure, figure, median, type Scored } from '../figure.ts';
import type { Options } from '../options.ts';

const SHORT = 10;
const ROUNDS = 5;
/** Runs that read the whole log take longer, and vary less. */
const ROUNDS_WITHOUT = 2;
/** Of this many messages one is answered: a log of 50,000 events with as many answers would take minutes to write. */
const ANSWERED = [8, 64] as const;
/** Events up to which the first holds. */
const CLOSE = 10_000;
/** Goals at any length: CPU of the first turn, ms, and memory of the process. */
const MOST_CPU_MS = 300;
const MOST_BYTES = 250e6;

/**
 * The first turn of a new process in a long conversation, beside the same in a conversation of 10 events. The log is
 * written by the engine, with the checkpoints that it writes by itself. Each run is a process on its own copy.
 */
export async function scoreCold({ quick, note }: Options): Promise<Scored> {
  const dir = mkdtempSync(path.join(tmpdir(), 'troupe-cold-'));
  const sizes = quick ? [2_000] : [10_000, 50_000];
  try {
    const logs = writeLogs(dir, [SHORT, ...sizes], note);
    const [short = [], ...long] = inTurns(logs, ROUNDS);
    const bare = inTurns(logs.slice(1).map(withoutDerived), ROUNDS_WITHOUT);
    const restored = inTurns(logs.slice(1).map(restoredFrom), ROUNDS_WITHOUT);
    const base = summaryOf(short);
    const all = sizes.map((size, at) => ({
      size,
      withThem: long[at] ?? [],
      without: bare[at] ?? [],
      restored: restored[at] ?? [],
    }));
    return {
      figures: [
        figure(
          `first turn of a process at ${SHORT} events: CPU from the message to the reply`,
          base.turnCpuMs,
          'ms',
        ),
        figure('  CPU of the start before it', base.startCpuMs, 'ms'),
        figure('  memory of the process', base.rssBytes, 'bytes'),
        ...all.flatMap((each) => figuresOf(each, base)),
      ],
      violations: all.flatMap(({ size, withThem, without, restored }) =>
        violationsOf(size, [...withThem, ...without, ...restored]),
      ),
    };
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

interface Measured {
  size: number;
  withThem: FirstTurn[];
  without: FirstTurn[];
  /** After an import of the export. */
  restored: FirstTurn[];
}

function figuresOf({ size, withThem, without, restored }: Measured, base: FirstTurn): Figure[] {
  const [one, slow, back] = [summaryOf(withThem), summaryOf(without), summaryOf(restored)];
  const at = `${size.toLocaleString('en').replaceAll(',', ' ')} events`;
  return [
    figure(
      `at ${at}: CPU from the message to the reply, beyond that`,
      one.turnCpuMs - base.turnCpuMs,
      'ms',
      atMost(15),
    ),
    figure('  the same after an import of its export', back.turnCpuMs - base.turnCpuMs, 'ms', atMost(15)),
    figure('  the same without checkpoints', slow.turnCpuMs - base.turnCpuMs, 'ms'),
    figure('  the same without checkpoints, in all', slow.turnCpuMs, 'ms', atMost(MOST_CPU_MS)),
    // Loading modules varies by more than the log can add: the check of the pages of a small database.
    figure('  CPU of the start, beyond that', one.startCpuMs - base.startCpuMs, 'ms'),
    figure('  memory, beyond that', one.rssBytes - base.rssBytes, 'bytes', atMost(20e6)),
    figure('  the same after an import of its export', back.rssBytes - base.rssBytes, 'bytes', atMost(20e6)),
    figure('  the same without checkpoints', slow.rssBytes - base.rssBytes, 'bytes'),
    figure('  the same without checkpoints, in all', slow.rssBytes, 'bytes', atMost(MOST_BYTES)),
    figure(
      '  rows of events read, of those that the prompt shows',
      one.rows / (one.shown ?? 1),
      'ratio',
      atMost(2),
    ),
    figure('  the same without checkpoints', slow.rows / (slow.shown ?? 1), 'ratio'),
  ];
}

/** A prompt whose bytes are not those of a fold from the first event is a broken invariant. */
function violationsOf(size: number, turns: readonly FirstTurn[]): string[] {
  const unverified = turns.filter(({ verified }) => verified === false).length;
  return unverified > 0 ? [`at ${size} events ${unverified} prompts cannot be rendered from the log`] : [];
}

/** Each log continues a copy of the one before. */
function writeLogs(dir: string, sizes: readonly number[], note: Options['note']): string[] {
  const logs: string[] = [];
  for (const size of sizes) {
    const log = path.join(dir, `${size}-events`);
    const before = logs.at(-1);
    if (before) cpSync(before, log, { recursive: true });
    run('write-log.ts', log, String(size), String(ANSWERED[size > CLOSE ? 1 : 0]));
    note(`wrote ${size} events`);
    logs.push(log);
  }
  return logs;
}

function withoutDerived(log: string): string {
  const bare = `${log}-bare`;
  cpSync(log, bare, { recursive: true });
  run('drop-derived.ts', bare);
  return bare;
}

function restoredFrom(log: string): string {
  const copy = `${log}-copy`;
  const restored = `${log}-restored`;
  cpSync(log, copy, { recursive: true });
  run('restore.ts', copy, restored);
  rmSync(copy, { recursive: true });
  return restored;
}

/**
 * First turns on copies of the logs, of each log in turn: what else the machine does then strikes all alike. The prompts of the
 * first round are rendered again.
 */
function inTurns(logs: readonly string[], rounds: number): FirstTurn[][] {
  const found: FirstTurn[][] = logs.map(() => []);
  for (let round = 0; round < rounds; round += 1) {
    for (const [at, log] of logs.entries()) {
      const copy = `${log}-copy`;
      cpSync(log, copy, { recursive: true });
      found[at]?.push(
        JSON.parse(run('first-turn.ts', copy, ...(round === 0 ? ['verify'] : []))) as FirstTurn,
      );
      rmSync(copy, { recursive: true });
    }
  }
  return found;
}

/** The least CPU time, because other work on the machine only adds to it; of the rest the median. */
function summaryOf(turns: readonly FirstTurn[]): FirstTurn {
  const [first] = turns;
  if (!first) throw new Error('no run');
  return {
    ...first,
    startCpuMs: Math.min(...turns.map(({ startCpuMs }) => startCpuMs)),
    turnCpuMs: Math.min(...turns.map(({ turnCpuMs }) => turnCpuMs)),
    rssBytes: median(turns.map(({ rssBytes }) => rssBytes)),
    rows: median(turns.map(({ rows }) => rows)),
  };
}

function run(script: string, ...args: string[]): string {
  const file = fileURLToPath(new URL(`../cold/${script}`, import.meta.url));
  const { stdout, stderr, status } = spawnSync(process.execPath, ['--expose-gc', file, ...args], {
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`${script} failed: ${stderr}`);
  return stdout;
}
