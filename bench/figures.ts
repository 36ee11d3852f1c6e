import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

export interface Figure {
  name: string;
  value: number;
  unit: string;
  goal: string;
  met: boolean | null;
}

export interface Goal {
  atMost?: number;
  atLeast?: number;
}

/** Runs the scripts in this folder and prints their figures. */
export interface Bench {
  heading: (text: string) => void;
  /** Reports what is not measured, and why. */
  skip: (reason: string) => void;
  /** Medians of `runs` fresh processes. The last line of a script is an object of numbers. */
  measure: (script: string, args?: readonly string[], options?: { runs?: number }) => Record<string, number>;
  add: (name: string, value: number | undefined, unit: string, goal?: Goal) => void;
}

const TIMEOUT_MS = 300_000;

export function createBench({ runs: usual, json }: { runs: number; json: boolean }): Bench & {
  figures: readonly Figure[];
  skipped: readonly string[];
} {
  const figures: Figure[] = [];
  const skipped: string[] = [];
  return {
    figures,
    skipped,
    heading(text) {
      if (!json) console.log(`\n${text}`);
    },
    skip(reason) {
      skipped.push(reason);
      if (!json) console.log(`\nskipped: ${reason}`);
    },
    measure(script, args = [], { runs = usual } = {}) {
      const path = fileURLToPath(new URL(`./${script}.ts`, import.meta.url));
      const found = Array.from({ length: runs }, (_, index) => {
        progress(`${script} ${args.join(' ')} ${index + 1}/${runs}`);
        const output = execFileSync(process.execPath, ['--expose-gc', path, ...args], {
          encoding: 'utf8',
          timeout: TIMEOUT_MS,
        });
        return JSON.parse(output.trim().split('\n').at(-1) ?? '{}') as Record<string, number>;
      });
      progress('');
      const keys = Object.keys(found[0] ?? {});
      return Object.fromEntries(keys.map((key) => [key, median(found.map((run) => run[key] ?? Number.NaN))]));
    },
    add(name, value = Number.NaN, unit, { atMost, atLeast } = {}) {
      const goal = atMost !== undefined ? `<= ${atMost}` : atLeast !== undefined ? `>= ${atLeast}` : '';
      const met = atMost !== undefined ? value <= atMost : atLeast !== undefined ? value >= atLeast : null;
      const figure = { name, value, unit, goal, met };
      figures.push(figure);
      if (!json) print(figure);
    },
  };
}

export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}

function progress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\u001b[K${text}`);
}

function print({ name, value, unit, goal, met }: Figure): void {
  const shown = Math.abs(value) >= 100 ? value.toFixed(0) : value.toFixed(value !== 0 && value < 0.1 ? 4 : 2);
  const verdict = met === null ? '' : met ? 'ok' : 'MISSED';
  console.log(`${name.padEnd(66)} ${shown.padStart(9)} ${unit.padEnd(9)} ${goal.padEnd(9)} ${verdict}`);
}
