import type { Problem } from './problem.ts';

const MAX_DEPTH = 100;

/**
 * `providerOptions` that contain themselves, or are nested too deep to be sent. Looked for before the schema, which would
 * follow them without an end.
 */
export function* endlessOptions(input: unknown): Generator<Problem> {
  for (const field of ['agents', 'templates']) {
    const agents: unknown = (input as Record<string, unknown> | null | undefined)?.[field];
    if (!Array.isArray(agents)) continue;
    for (const [index, agent] of agents.entries()) {
      const options = (agent as { providerOptions?: unknown } | null | undefined)?.providerOptions;
      if (!isEndless(options)) continue;
      const message = `contains itself, or is nested deeper than ${MAX_DEPTH} levels: give plain JSON`;
      yield { path: [field, index, 'providerOptions'], message };
    }
  }
}

function isEndless(value: unknown, above: readonly unknown[] = []): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (above.length >= MAX_DEPTH || above.includes(value)) return true;
  return Object.values(value).some((part) => isEndless(part, [...above, value]));
}
