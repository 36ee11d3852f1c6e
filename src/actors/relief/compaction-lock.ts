import { addressKey, type EventId } from '../../events/index.ts';
import type { TurnRun } from '../turn-run.ts';

/** Longer than a summary may take, so that nobody has to renew it. */
const LOCK_MS = 120_000;
export const SUMMARY_TIMEOUT_MS = 90_000;

/** Compactions of a conversation are numbered, and an id is taken once: that is what makes them one line. */
export function compactionId(number: number): EventId {
  return `compaction:${number}` as EventId;
}

/** Only saves a second call: without it both would write, and the first one would count. Never given back, as it ends with the number. */
export async function takeLock({ deps, live, lease }: TurnRun, number: number): Promise<boolean> {
  const { tenant, conversation } = live.address;
  const now = deps.clock.now();
  const owner = `${addressKey(live.address)}:${lease.record.fence}`;
  return deps.store.claim(`compaction:${tenant}/${conversation}:${number}`, {
    owner,
    now,
    until: now + LOCK_MS,
  });
}

/** Whether the one who held it is out of time; then it is ours. */
export const lockFree = takeLock;
