import { DEFAULT_TENANT, runtimeId, SYSTEM_AUTHOR } from '../../events/index.ts';
import { TroupeError } from '../../errors.ts';
import type { ConversationKey } from '../../store/store.ts';
import type { EngineDeps, Lifecycle, Schedule } from '../engine/engine-deps.ts';
import { atWork, deleteConversation } from './delete-conversation.ts';
import { type ParticipantsCache, participantsOf } from './participants-cache.ts';

/** Conversations checked in one round of the sweeper. */
const PAGE = 50;
/** How often all conversations are listed. */
const LIST_EVERY_MS = 600_000;
const MOST_LISTED = 1_000_000;

interface Quiet {
  log: ConversationKey;
  head: number;
  at: number;
}

/** Archives and deletes conversations that were quiet for long, a page per round. Its memory only saves repeated checks. */
export function createEndQuiet(
  deps: EngineDeps,
  participantsCache: ParticipantsCache,
  { archiveAfterMs = Infinity, deleteAfterMs = Infinity }: Lifecycle,
): () => Promise<void> {
  const { store, clock, log: events, tenants = async () => [DEFAULT_TENANT] } = deps;
  const shortest = Math.min(archiveAfterMs, deleteAfterMs);
  /** Heads of conversations that need no more checks: archived ones, and threads, which end with their root. */
  const settled = new Map<string, number>();
  let queue: Quiet[] = [];
  let listAt = 0;

  return async function endQuiet() {
    const now = clock.now();
    if (shortest === Infinity) return;
    if (queue.length === 0 && now >= listAt) {
      listAt = now + Math.min(LIST_EVERY_MS, Math.ceil(shortest / 2));
      for (const tenant of await tenants()) queue.push(...(await quietOf(tenant, now - shortest)));
    }
    // The newest activity comes first, so the conversations that were quiet longest are at the end.
    for (const each of queue.splice(-PAGE)) await look(each, now);
  };

  async function quietOf(tenant: ConversationKey['tenant'], before: number): Promise<Quiet[]> {
    const all = await store.conversations(tenant, MOST_LISTED);
    return all.flatMap(({ id, head, at }) => {
      const log = { tenant, conversation: id };
      return at <= before && settled.get(quietKey(log)) !== head ? [{ log, head, at }] : [];
    });
  }

  async function look({ log, head, at }: Quiet, now: number): Promise<void> {
    const { tasks } = await participantsOf(events, log, deps.checkpoints);
    if (tasks.upTo !== head) return;
    if (tasks.thread) return void settled.set(quietKey(log), head);
    if (tasks.directions.archived) {
      if (deleteAfterMs === Infinity) settled.set(quietKey(log), head);
      else if (at <= now - deleteAfterMs) await remove(log);
      return;
    }
    if (at > now - archiveAfterMs || [...tasks.tasks.values()].some(({ end }) => end === null)) return;
    if ((await atWork(deps, log)) !== null) return;
    const body = { reason: 'nothing was said for long' };
    // One id per quiet period: of two processes one archives it.
    const draft = {
      id: runtimeId('archived', head),
      author: SYSTEM_AUTHOR,
      to: [],
      kind: 'archived' as const,
      body,
    };
    await events.append(log, [draft]);
  }

  async function remove(log: ConversationKey): Promise<void> {
    try {
      await deleteConversation(deps, log, 'none');
      participantsCache.forget(log);
    } catch (error) {
      // An agent is at work; a later round tries again.
      if (!(error instanceof TroupeError) || error.code !== 'command_refused') throw error;
    }
  }
}

function quietKey({ tenant, conversation }: ConversationKey): string {
  return `${tenant}/${conversation}`;
}

const MINUTE_MS = 60_000;

/**
 * Sends the messages of schedules that have come due since the last check.
 *  F1  Each time is sent once, by whichever process: its event has one id.
 *  F2  Of several times that passed unchecked, only the last is sent.
 *  F3  The first check of a schedule sends nothing: earlier times do not count.
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
      // After the event: a process that dies in between sends it again, under the same id.
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
    // Sent already, with the earlier text of the schedule.
    if (!(error instanceof TroupeError) || error.code !== 'event_conflict') throw error;
  }
}
