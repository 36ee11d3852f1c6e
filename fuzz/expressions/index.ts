import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import type { Expression } from './find-expressions.ts';

export { composedPlacesIn, literalsIn, type Expression } from './find-expressions.ts';
export { hostileRepetitions, plainRepetitions, type Repetition } from './hostile-repetitions.ts';
export { measureGrowth, type Growth } from './measure-growth.ts';

const MAX_OUTPUT_BYTES = 64 * 1_024 * 1_024;

/** The values of the composed expressions of `src`. */
export async function composedExpressions(): Promise<Expression[]> {
  const script = path.join(import.meta.dirname, 'record-composed.ts');
  const { stdout } = await promisify(execFile)(process.execPath, [script], { maxBuffer: MAX_OUTPUT_BYTES });
  return JSON.parse(stdout) as Expression[];
}

/** Runs the expression as it is used: all matches when it is global. */
export function matcher({ source, flags }: Pick<Expression, 'source' | 'flags'>): (text: string) => unknown {
  const pattern = new RegExp(source, flags);
  return (text) => {
    pattern.lastIndex = 0;
    return flags.includes('g') ? text.replace(pattern, '') : pattern.exec(text);
  };
}

/** Expressions whose pattern comes from the operator, as `file code`. The author of the agents file is trusted. */
export const OPERATORS_PATTERNS: ReadonlySet<string> = new Set([
  "library/routing/route.ts new RegExp(pattern, 'iu')",
  "library/routing/route.ts new RegExp(text, 'iu')",
  "providers/scripted.ts new RegExp(source, 'su')",
  "library/config/redact-secrets.ts new RegExp(source, flags.includes('g') ? flags : `${flags}g`)",
]);
