import { afterAll } from 'vitest';

/**
 * The values are captured before any test file of this process runs: files share a process, see `vitest.config.ts`.
 */
const SHARED = ['fetch', 'setTimeout', 'setInterval', 'Date'] as const;
const kept = Symbol.for('troupe.test.globals');
const afterFile = Symbol.for('troupe.test.afterFile');
const store = globalThis as { [kept]?: Map<string, unknown>; [afterFile]?: () => Promise<void> };
const first = (store[kept] ??= new Map(SHARED.map((name) => [name, globalThis[name]])));

/** A test file that leaves a global changed breaks later files, and their errors name neither. */
afterAll(() => {
  const changed = SHARED.filter((name) => globalThis[name] !== first.get(name));
  for (const name of changed) Object.assign(globalThis, { [name]: first.get(name) });
  if (changed.length > 0) throw new Error(`this file leaves globals changed: ${changed.join(', ')}`);
});

/** Servers become slower with each database that is left: `support/mode.ts` drops those that the file opened. */
afterAll(() => store[afterFile]?.());
