import type { ToolCall, ToolResultBody } from '../../events/index.ts';
import { headTail } from './cut-text.ts';
import { errorsOf } from './find-errors.ts';
import { capped } from './sentences.ts';

const MAX_ARGS = 160;
const MAX_VALUE = 80;
const SHORT_RESULT_TOKENS = 40;

/** A call in one line: `read path=src/a.ts -> done`. */
export function callLine({ name, args }: ToolCall, result: ToolResultBody | null): string {
  const artifact = result?.artifact === undefined ? '' : `, @artifact/${result.artifact}`;
  return `${name} ${compactArgs(args)} -> ${result ? result.outcome : 'no result'}${artifact}`;
}

/** Longer ones hold a file: their beginning says what they are. */
const MAX_PARSED = 65_536;

function compactArgs(args: string): string {
  let root: unknown;
  try {
    root = JSON.parse(args.slice(0, MAX_PARSED));
  } catch {
    // What is no JSON is shown as it was written.
    return capped(
      args
        .slice(0, 8 * MAX_ARGS)
        .replace(/\s+/g, ' ')
        .trim(),
      MAX_ARGS,
    );
  }
  if (typeof root !== 'object' || root === null || Array.isArray(root))
    return capped(JSON.stringify(root), MAX_ARGS);
  const fields = Object.entries(root).map(([key, value]) => `${key}=${shortValue(value)}`);
  return capped(fields.join(' '), MAX_ARGS);
}

function shortValue(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return capped(
    text
      .slice(0, 4 * MAX_VALUE)
      .replace(/\s+/g, ' ')
      .trim(),
    MAX_VALUE,
  );
}

/** What of a result is worth its room: its errors, or all of it if that is little; the rest is one call away. */
export function excerptOf(
  result: ToolResultBody,
  maxTokens: number,
  count: (text: string) => number,
): string {
  const errors = errorsOf(result);
  if (errors.length > 0) return headTail(errors.join('\n'), maxTokens, count);
  const content = result.content.trim();
  if (content.length > SHORT_RESULT_TOKENS * 32) return '';
  return count(content) <= Math.min(maxTokens, SHORT_RESULT_TOKENS) ? content : '';
}
