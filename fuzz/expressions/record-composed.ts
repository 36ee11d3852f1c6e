import { readdirSync } from 'node:fs';
import path from 'node:path';
import type { Expression } from './find-expressions.ts';

/**
 * `node fuzz/expressions/record-composed.ts`: loads all of `src` with a `RegExp` that writes down what is composed where,
 * does once what composes more of them later, and prints them as JSON. A process of its own: modules load once.
 */
const SRC = path.join(import.meta.dirname, '../../src');
/** Loading it runs the command line. */
const ENTRY_POINT = 'cli.ts';

const found = new Map<string, Expression>();
const Plain = globalThis.RegExp;
globalThis.RegExp = new Proxy(Plain, {
  construct: (target, given: [string, string?], newTarget) =>
    record(Reflect.construct(target, given, newTarget)),
  apply: (target, self, given: [string, string?]) => record(Reflect.apply(target, self, given) as RegExp),
});

for (const name of readdirSync(SRC, { recursive: true, encoding: 'utf8' }).sort()) {
  if (name.endsWith('.ts') && name !== ENTRY_POINT) await import(path.join(SRC, name));
}
await composeLater();
process.stdout.write(JSON.stringify([...found.values()]), () => process.exit());

/** Callers of the functions that compose an expression each time. */
async function composeLater(): Promise<void> {
  const { requestParts } = await import('../../src/providers/replay.ts');
  requestParts({ trace: { conversation: 'team-1.x:y' }, messages: [], tools: [] } as never);
}

/** Of a line of a stack; undefined where it is none of ours. */
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
  // Of its callers the first two are this function and the trap.
  const where = placeIn(new Error().stack?.split('\n')[3] ?? '');
  if (where !== undefined) {
    const { source, flags } = made;
    found.set(`${where} ${source} ${flags}`, { where, source, flags });
  }
  return made;
}
