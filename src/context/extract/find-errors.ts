import type { ToolResultBody } from '../../events/index.ts';
import { ERROR_LINE, FAILURE_WORD } from './lexicon.ts';
import { capped } from './sentences.ts';

const MAX_ERROR = 240;
/** A compiler that stops at a hundred errors has said what it has to say with the first. */
const MAX_PER_RESULT = 6;
const CODE_ENDS = /[,;{(\\]$/;

/** Lines of a text that say what went wrong: tracebacks, compilers, shells; not the code that handles errors. */
export function errorLines(text: string, max = MAX_PER_RESULT): string[] {
  const found = new Set<string>();
  for (const line of text.split('\n')) {
    if (line.length > 4_000 || found.size >= max) continue;
    const clean = line.trim();
    if (ERROR_LINE.test(clean) && !CODE_ENDS.test(clean)) found.add(capped(clean, MAX_ERROR));
  }
  return [...found];
}

/** Of a failed result at least one line. */
export function errorsOf({ outcome, content }: ToolResultBody): string[] {
  const lines = errorLines(content);
  if (outcome === 'done' || lines.length > 0) return lines;
  const all = content.split('\n').map((line) => line.trim());
  const said = all.find((line) => FAILURE_WORD.test(line)) ?? all.findLast((line) => line !== '');
  return said === undefined ? [] : [capped(said, MAX_ERROR)];
}
