import { DEFAULT_TENANT, runtimeId, SYSTEM_AUTHOR } from '../../events/index.ts';
import { TroupeError } from '../../base/errors.ts';
import type { ConversationKey } from '../../store/store.ts';
import type { EngineDeps, Lifecycle } from '../engine/engine-deps.ts';
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
