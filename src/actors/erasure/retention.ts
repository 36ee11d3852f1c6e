import { type ConversationId, DEFAULT_TENANT, type TenantId } from '../../events/index.ts';
import type { ConversationKey } from '../../store/store.ts';
import type { EngineDeps, Retention } from '../actor/engine-deps.ts';
import { atWork, type Branch, readTree } from '../conversations/delete-conversation.ts';
import { readTasks } from '../log/tasks.ts';
import { type ConversationErasureDeps, eraseConversations } from './erase-conversations.ts';
import { linesOf } from './survey.ts';

const DAY_MS = 86_400_000;
/** Maximum trees that are erased with one reading of a tenant. */
const BATCH = 500;
const RETRY_MS = 3_600_000;

/**
 * Erases conversations without recent events, threads with their root. A round reads all logs of a tenant, because files and
 * texts that other conversations share must stay. So there is one round a day.
 */
export function createRetention(
  deps: EngineDeps,
  { days, tenants: own = {} }: Retention,
  erasing: () => Pick<ConversationErasureDeps, 'spared' | 'forget'>,
): () => Promise<void> {
  const { store, clock, limits, tenants = async () => [DEFAULT_TENANT] } = deps;
  const periodMs = Math.min(1, days / 2, ...Object.values(own).map((each) => each / 2)) * DAY_MS;
  let nextAt = 0;

  return async function retain() {
    const now = clock.now();
    if (now < nextAt) return;
    nextAt = now + Math.min(RETRY_MS, periodMs);
    const until = now + Math.ceil(0.9 * periodMs);
    if (!limits.soleOwner && !(await store.claim('retention', { owner: deps.process, now, until }))) return;
    let erased = 0;
    for (const tenant of await tenants()) erased += await endOld(tenant, now);
    if (erased > 0) await store.scrub();
    nextAt = now + periodMs;
  };

  async function endOld(tenant: TenantId, now: number): Promise<number> {
    const before = now - (Object.hasOwn(own, tenant) ? own[tenant]! : days) * DAY_MS;
    const old: ConversationId[] = [];
    for await (const { id, at } of linesOf(store, tenant)) if (at <= before) old.push(id);
    const treeOf = (root: ConversationKey) => treeIfOld(root, before);
    let erased = 0;
    for (let from = 0; from < old.length; from += BATCH) {
      const some = old.slice(from, from + BATCH);
      erased += (await eraseConversations({ ...deps, ...erasing(), treeOf }, tenant, some)).conversations;
    }
    return erased;
  }

  /** The tree to erase; null if it is a thread, has newer events, or has an agent at work. */
  async function treeIfOld(root: ConversationKey, before: number): Promise<Branch[] | null> {
    const { fold } = await readTasks(store, root, deps.checkpoints);
    if (fold.thread) return null;
    const tree = await readTree(store, root);
    for (const { log, head } of tree) {
      const { events } = await store.readPage(log, { after: Math.max(0, head - 1) });
      if (events.some(({ at }) => at > before) || (await atWork(deps, log)) !== null) return null;
    }
    return tree;
  }
}
