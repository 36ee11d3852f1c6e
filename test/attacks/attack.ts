import { expect, test } from 'vitest';

/** The data of a case for `scripts/test-attacks.ts`, in the `meta` of its test. */
export interface AttackMeta {
  refusedAs?: string[];
}

/** Reports how an attempt was refused. */
export type Refused = (as: string) => void;

/** One of the attacks by its number; the prefix of the name is how they are counted. */
export function attack(
  number: number,
  name: string,
  run: (refused: Refused) => Promise<void>,
  { missing = null }: { missing?: string | null } = {},
): void {
  const title = `attack ${number}: ${name}`;
  if (missing !== null) return test.skip(`${title} (skipped: no ${missing})`, () => {});
  test(title, async ({ task }) => {
    const refusals = new Set<string>();
    await run((as) => void refusals.add(as));
    // A case without any attempt proves nothing.
    expect(refusals.size).toBeGreaterThan(0);
    Object.assign(task.meta, { refusedAs: [...refusals] } satisfies AttackMeta);
  });
}
