import { DEFAULT_TENANT, runtimeId, SYSTEM_AUTHOR } from '../../../events/index.ts';
import { TroupeError } from '../../../base/errors.ts';
import type { ParticipantsCache } from '../../conversations/messages.ts';
import type { Feature } from '../../attempt/turn-run.ts';
import type { Schedule } from '../../attempt/feature-types.ts';
import type { EngineDeps } from '../../actor/engine-deps.ts';

export const schedules: Feature = {
  open({ schedules: defined = [] }) {
    if (defined.length === 0) return {};
    return {
      schedules: { fire: (deps, participantsCache) => fireSchedules(deps, defined, participantsCache) },
    };
  },
};

const MINUTE_MS = 60_000;

/**
 * Sends the messages of schedules that have come due since the last check.
 *  F1  For each scheduled time one message is sent, by any process, because its event has a fixed id.
 *  F2  If several times passed without a check, only the last is sent.
 *  F3  The first check of a schedule sends nothing, because earlier times do not count.
 */
async function fireSchedules(
  deps: Pick<EngineDeps, 'store' | 'log' | 'clock' | 'onWarning'>,
  defined: readonly Schedule[],
  participantsCache: ParticipantsCache,
): Promise<void> {
  const { store, clock, onWarning } = deps;
  for (const schedule of defined) {
    const key = `schedule:${schedule.name}`;
    try {
      const now = clock.now();
      const seen = await store.get(DEFAULT_TENANT, key);
      const due = seen === null ? now : schedule.lastBy(now);
      if (due === null || (seen !== null && due <= Number(seen))) continue;
      if (seen !== null) await fire(deps, schedule, due, participantsCache);
      // Written after the event. If the process dies in between, the event is sent again under the same id.
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
    onWarning(`no message is sent: ${conversation} is archived`, `schedule:${name}`);
    return;
  }
  const id = runtimeId('schedule', name, Math.floor(due / MINUTE_MS));
  try {
    await events.append(log, [{ id, author: SYSTEM_AUTHOR, to: [to], kind: 'message', body: { content } }]);
  } catch (error) {
    // It was already sent, with an earlier text of the schedule.
    if (!(error instanceof TroupeError) || error.code !== 'event_conflict') throw error;
  }
}
