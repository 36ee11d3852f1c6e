import { expect, test } from 'vitest';

/** What a case tells `scripts/test-attacks.ts`, in the `meta` of its test. */
export interface AttackMeta {
  refusedAs?: string[];
}

/** Says how something was refused, once it was. */
export type Refused = (as: string) => void;

/** One of the attacks by its number; the prefix of the name is what they are counted by. */
export function attack(
  number: number,
  name: string,
  run: (refused: Refused) => Promise<void>,
  { missing = null }: { missing?: string | null } = {},
): void {
  const title = `attack ${number}: ${name}`;
  if (missing !== null) return test.skip(`${title} (skipped: no ${missing})`, () => {});
  test(title, async ({ task }) => {
    const told = new Set<string>();
    await run((as) => void told.add(as));
    // Nothing that was tried is no refusal.
    expect(told.size).toBeGreaterThan(0);
    Object.assign(task.meta, { refusedAs: [...told] } satisfies AttackMeta);
  });
}
