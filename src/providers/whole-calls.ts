import type { ToolCall, Usage } from '../events/index.ts';
import { parseArgs } from './call-text.ts';

export interface FinishedCalls {
  /** The calls that may be made. */
  calls: ToolCall[];
  /** The tool of a call that began and did not come whole. */
  broken?: string | undefined;
  /** The answer was cut, whatever its end is called. */
  isCut: boolean;
}

/**
 * The calls of a finished answer that its model has written to their end. The limit of output tokens may fall before or inside
 * the arguments of the last one, and no arguments are `{}` to a tool: it would run with what nobody wrote. So the last call of a
 * cut answer counts only with a whole object that is not empty. Some servers do not say that they cut. Of an answer that a filter
 * has ended no call is made.
 */
export function wholeCalls(
  calls: readonly ToolCall[],
  { stop, usage }: { stop: string; usage: Usage },
  maxOutputTokens: number,
): FinishedCalls {
  if (stop === 'refusal') return { calls: [], isCut: false };
  const isFull = usage.output - usage.reasoning >= maxOutputTokens;
  if (calls.length === 0 || (stop !== 'length' && !isFull)) return { calls: [...calls], isCut: false };
  const whole = calls.filter(({ args }, index) => {
    const parsed = parseArgs(args);
    return parsed !== null && (index < calls.length - 1 || Object.keys(parsed).length > 0);
  });
  const broken = calls.findLast((call) => !whole.includes(call))?.name;
  return { calls: whole, isCut: broken !== undefined, ...(broken !== undefined && { broken }) };
}
