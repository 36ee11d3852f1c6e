import { TroupeError } from '../../errors.ts';
import { type ConversationId, DEFAULT_TENANT, type EventId, SYSTEM_AUTHOR } from '../../events/index.ts';
import type { EngineDeps } from '../engine-deps.ts';
import { atWork, deleteConversation } from './delete-conversation.ts';
import { standingOf, type Standings } from './standings.ts';
import type { Lifecycle } from './upkeep.ts';

/** Conversations looked at in one round of the sweeper. */
const PAGE = 50;
/** How often all conversations are listed. */
const LIST_EVERY_MS = 600_000;
const MOST_LISTED = 1_000_000;

/** Archives and deletes what has been quiet for long, a page a round. What it remembers only spares it looks. */
export function createEndQuiet(
  deps: EngineDeps,
  standings: Standings,
  { archiveAfterMs = Infinity, deleteAfterMs = Infinity }: Lifecycle,
): () => Promise<void> {
  const { store, clock, log: events } = deps;
  const shortest = Math.min(archiveAfterMs, deleteAfterMs);
  /** Archived ones that nothing more will become of, and threads, which end with their conversation; by their head. */
  const settled = new Map<ConversationId, number>();
  let queue: { id: ConversationId; head: number; at: number }[] = [];
  let listAt = 0;

  return async function endQuiet() {
    const now = clock.now();
    if (shortest === Infinity) return;
    if (queue.length === 0 && now >= listAt) {
      listAt = now + Math.min(LIST_EVERY_MS, Math.ceil(shortest / 2));
      const all = await store.conversations(DEFAULT_TENANT, MOST_LISTED);
      queue = all.filter(({ id, head, at }) => at <= now - shortest && settled.get(id) !== head);
    }
    // The last active come first, so the longest quiet are taken first.
    for (const each of queue.splice(-PAGE)) await look(each, now);
  };

  async function look({ id, head, at }: (typeof queue)[number], now: number): Promise<void> {
    const log = { tenant: DEFAULT_TENANT, conversation: id };
    const { tasks } = await standingOf(events, log);
    if (tasks.upTo !== head) return;
    if (tasks.thread) return void settled.set(id, head);
    if (tasks.archived) {
      if (deleteAfterMs === Infinity) settled.set(id, head);
      else if (at <= now - deleteAfterMs) await remove(log);
      return;
    }
    if (at > now - archiveAfterMs || [...tasks.tasks.values()].some(({ end }) => end === null)) return;
    if ((await atWork(deps, log)) !== null) return;
    const body = { reason: 'nothing was said for long' };
    // One id for one stretch of quiet: of two processes one archives it.
    const draft = {
      id: `archived:${head}` as EventId,
      author: SYSTEM_AUTHOR,
      to: [],
      kind: 'archived' as const,
      body,
    };
    await events.append(log, [draft]);
  }

  async function remove(log: { tenant: typeof DEFAULT_TENANT; conversation: ConversationId }): Promise<void> {
    try {
      await deleteConversation(deps, log, 'none');
      standings.forget(log);
    } catch (error) {
      // Somebody is at work in it: later, perhaps.
      if (!(error instanceof TroupeError) || error.code !== 'command_refused') throw error;
    }
  }
}
