import { TroupeError } from '../../errors.ts';
import type { ConversationId, Post, TenantId } from '../../events/index.ts';
import type { EngineDeps } from '../engine/engine-deps.ts';

/**
 * Brings posts to their logs, those for one log in order. Safe to repeat. Where another event has the id, that one
 * counts: somebody else has ended the task.
 */
export async function sendPosts(
  { log, metrics }: Pick<EngineDeps, 'log' | 'metrics'>,
  tenant: TenantId,
  posts: readonly Post[],
): Promise<void> {
  await Promise.all([...Map.groupBy(posts, ({ conversation }) => conversation)].map(sendTo));

  async function sendTo([conversation, own]: [ConversationId, Post[]]): Promise<void> {
    for (const { draft } of own) {
      try {
        await log.append({ tenant, conversation }, [draft]);
      } catch (error) {
        if (!(error instanceof TroupeError) || error.code !== 'event_conflict') throw error;
        metrics.count('posts_too_late', { kind: draft.kind });
      }
    }
  }
}
