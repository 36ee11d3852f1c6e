import { Session } from 'node:inspector/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

/** A function of `src`, or of a package beside it, that ran, by its place in the file. */
export interface Ran {
  /** Relative to `src`; that of a package is relative to the root. */
  file: string;
  start: number;
  end: number;
  /** As V8 knows it. Empty: it has no name. */
  name: string;
  /** Entries, and resumptions of async functions and generators. */
  calls: number;
}

/** What ran since the last call of `take`. */
export interface Taken {
  functions: Ran[];
  /** Functions of `node_modules`, and of Node itself. */
  elsewhere: { packages: number; node: number };
}

export interface Coverage {
  take(): Promise<Taken>;
  stop(): Promise<void>;
}

const ROOT = path.dirname(import.meta.dirname);
const SRC = `${path.join(ROOT, 'src')}${path.sep}`;
/** The clock of a measurement is no part of a turn. */
const BESIDE = /^packages\/(?!testing\/)[^/]+\/src\//;

/**
 * Counts calls of functions with precise coverage of V8. Must begin before what it counts is loaded, because V8 keeps
 * no counters for code that it has compiled before.
 */
export async function startCoverage(): Promise<Coverage> {
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });

  return {
    async take() {
      const { result } = await session.post('Profiler.takePreciseCoverage');
      const functions: Ran[] = [];
      const elsewhere = { packages: 0, node: 0 };
      for (const script of result) {
        const file = fileOf(script.url);
        for (const { functionName, ranges } of script.functions) {
          const [range] = ranges;
          if (!range || range.count === 0) continue;
          if (file === 'node' || file === 'packages') elsewhere[file] += 1;
          else if (file !== null)
            functions.push({
              file: file.path,
              name: functionName,
              start: range.startOffset,
              end: range.endOffset,
              calls: range.count,
            });
        }
      }
      return { functions, elsewhere };
    },
    async stop() {
      await session.post('Profiler.stopPreciseCoverage');
      session.disconnect();
    },
  };
}

/** Which callbacks share a turn of the event loop, and when the sweeper's pause ends, is chance. */
const OF_CHANCE = /^node:internal\/(?:process\/|event_target$)/;

/** Null: the script belongs to the measurement. */
function fileOf(url: string): { path: string } | 'node' | 'packages' | null {
  if (!url.startsWith('file:')) return url.startsWith('node:') && !OF_CHANCE.test(url) ? 'node' : null;
  const file = fileURLToPath(url);
  if (file.includes(`${path.sep}node_modules${path.sep}`)) return 'packages';
  if (file.startsWith(SRC)) return { path: file.slice(SRC.length).replaceAll(path.sep, '/') };
  const beside = path.relative(ROOT, file).replaceAll(path.sep, '/');
  return BESIDE.test(beside) ? { path: beside } : null;
}
