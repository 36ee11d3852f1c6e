import { TroupeError } from '../../errors.ts';
import { DEFAULT_TENANT, runtimeId, SYSTEM_AUTHOR } from '../../events/index.ts';
import type { EngineDeps } from '../engine/engine-deps.ts';
import type { ParticipantsCache } from './participants-cache.ts';
import type { Schedule } from './upkeep.ts';

const MINUTE_MS = 60_000;

/**
 * Says what has come due since the last look.
 *  F1  A time is said once, whoever looks: its event has one id.
 *  F2  Of the times that passed while nobody looked, the last is said.
 *  F3  The first look at a schedule says nothing: what was before it is nobody's.
 */
export async function fireSchedules(
  deps: Pick<EngineDeps, 'store' | 'log' | 'clock' | 'onWarning'>,
  schedules: readonly Schedule[],
  participantsCache: ParticipantsCache,
): Promise<void> {
  const { store, clock, onWarning } = deps;
  for (const schedule of schedules) {
    const key = `schedule:${schedule.name}`;
    try {
      const now = clock.now();
      const seen = await store.get(DEFAULT_TENANT, key);
      const due = seen === null ? now : schedule.lastBy(now);
      if (due === null || (seen !== null && due <= Number(seen))) continue;
      if (seen !== null) await fire(deps, schedule, due, participantsCache);
      // After the event: a process that ends in between says it again, under the same id.
      await store.compareAndSet(DEFAULT_TENANT, key, seen, String(due));
    } catch (error) {
      onWarning(error, key);
    }
  }
}

async function fire(
  { log: events, onWarning }: Pick<EngineDeps, 'log' | 'onWarning'>,
  { name, conversation, to, content }: Schedule,
  due: number,
  participantsCache: ParticipantsCache,
): Promise<void> {
  const log = { tenant: DEFAULT_TENANT, conversation };
  if ((await participantsCache.of(log)).tasks.directions.archived) {
    onWarning(`nothing is said in ${conversation}, which is archived`, `schedule:${name}`);
    return;
  }
  const id = runtimeId('schedule', name, Math.floor(due / MINUTE_MS));
  try {
    await events.append(log, [{ id, author: SYSTEM_AUTHOR, to: [to], kind: 'message', body: { content } }]);
  } catch (error) {
    // Said already, in the words that it had then.
    if (!(error instanceof TroupeError) || error.code !== 'event_conflict') throw error;
  }
}
