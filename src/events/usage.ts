import * as z from 'zod';

/** Tokens of one model call (or the sum over a turn). `input` includes what was read from and written to a cache. */
export const Usage = z.object({
  input: z.int().nonnegative(),
  output: z.int().nonnegative(),
  cacheRead: z.int().nonnegative(),
  cacheWrite: z.int().nonnegative(),
  reasoning: z.int().nonnegative(),
});
export type Usage = z.infer<typeof Usage>;

export const NO_USAGE: Usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, reasoning: 0 };

export function addUsage(a: Usage, b: Usage): Usage {
  return {
    input: sum(a.input, b.input),
    output: sum(a.output, b.output),
    cacheRead: sum(a.cacheRead, b.cacheRead),
    cacheWrite: sum(a.cacheWrite, b.cacheWrite),
    reasoning: sum(a.reasoning, b.reasoning),
  };
}

/** Beyond it nothing is a whole number, and no event that holds it could be read. */
function sum(a: number, b: number): number {
  return Math.min(Number.MAX_SAFE_INTEGER, a + b);
}
