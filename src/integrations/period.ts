import type { KeyValue } from '../key-value.ts';

type PeriodEntries = Pick<KeyValue, 'get' | 'compareAndSet'>;

/** What is left of a period that is shorter is not worth taking. */
const LEAST_MS = 200;

/** The rest of a period whose process has ended in peace: until when, ms, or null. One of those who ask gets it. */
export async function takeLeft(
  keyValue: PeriodEntries,
  task: string,
  { owner, now }: { owner: string; now: number },
): Promise<number | null> {
  const left = await keyValue.get(keyOf(task));
  const until = Number(left ?? 0);
  if (!Number.isSafeInteger(until) || until <= now + LEAST_MS) return null;
  const taken = `taken by ${owner}`;
  return (await keyValue.compareAndSet(keyOf(task), left, taken)) === taken ? until : null;
}

/** A claim cannot be given back: who ends before its time says so, and another need not wait. */
export async function leavePeriod(keyValue: PeriodEntries, task: string, until: number): Promise<void> {
  await keyValue.compareAndSet(keyOf(task), await keyValue.get(keyOf(task)), String(until));
}

function keyOf(task: string): string {
  return `left/${task}`;
}
