import type { KeyValue } from '../../base/key-value.ts';

type PeriodEntries = Pick<KeyValue, 'get' | 'compareAndSet'>;

/** Shorter remainders are not taken. */
const LEAST_MS = 200;

/** Takes the rest of a claim that another process has left. One process gets it: returns its end, ms, or null. */
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

/** Leaves the rest of a claim to another process, since a claim cannot be released. */
export async function leavePeriod(keyValue: PeriodEntries, task: string, until: number): Promise<void> {
  await keyValue.compareAndSet(keyOf(task), await keyValue.get(keyOf(task)), String(until));
}

function keyOf(task: string): string {
  return `left/${task}`;
}
