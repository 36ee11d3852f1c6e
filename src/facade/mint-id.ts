import { randomFillSync } from 'node:crypto';
import { monotonicFactory } from 'ulid';
import type { EventId } from '../events/index.ts';

/** Asking for randomness costs more than all the rest of an id, so it is asked for in bulk. */
const pool = new Uint8Array(4_096);
let used = pool.length;

function fromPool(): number {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  return pool[used++]! / 256;
}

/** A ULID: ids of one process rise, also within a millisecond. */
export const mintId = monotonicFactory(fromPool) as () => EventId;
