import { readdirSync } from 'node:fs';
import path from 'node:path';
import type { Expression } from './find-expressions.ts';

/**
 * `node fuzz/expressions/record-composed.ts`: loads all of `src` with a `RegExp` that records what is composed where,
 * runs once the code that composes more later, and prints them as JSON. It is a separate process, because modules
 * load only once.
 */
const SRC = path.join(import.meta.dirname, '../../src');
/** Loading one of these files runs the command line. */
const ENTRY_POINTS = ['cli.ts', 'cli/start.ts'];

const found = new Map<string, Expression>();
const Plain = globalThis.RegExp;
globalThis.RegExp = new Proxy(Plain, {
  construct: (target, given: [string, string?], newTarget) =>
    record(Reflect.construct(target, given, newTarget)),
  apply: (target, self, given: [string, string?]) => record(Reflect.apply(target, self, given) as RegExp),
});

for (const name of readdirSync(SRC, { recursive: true, encoding: 'utf8' }).sort()) {
  if (name.endsWith('.ts') && !ENTRY_POINTS.includes(name)) await import(path.join(SRC, name));
}
await composeLater();
process.stdout.write(JSON.stringify([...found.values()]), () => process.exit());

/** Calls the functions that compose an expression on each call. */
async function composeLater(): Promise<void> {
  const { requestParts } = await import('../../src/providers/recording.ts');
  const { routeTable } = await import('../../src/http/routes/index.ts');
  routeTable();
  requestParts({ trace: { conversation: 'team-1.x:y' }, messages: [], tools: [] } as never);
}

/** File and line from a line of a stack trace; undefined for code outside `src`. */
function placeIn(line: string): string | undefined {
  const at = line.indexOf(`${SRC}/`);
  return at < 0
    ? undefined
    : line
        .slice(at + SRC.length + 1)
        .split(':', 2)
        .join(':');
}

function record(made: RegExp): RegExp {
  // The first two callers are this function and the trap.
  const where = placeIn(new Error().stack?.split('\n')[3] ?? '');
  if (where !== undefined) {
    const { source, flags } = made;
    found.set(`${where} ${source} ${flags}`, { where, source, flags });
  }
  return made;
}
