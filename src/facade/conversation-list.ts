import { isGranted, rangesOf } from '../access/index.ts';
import { TroupeError } from '../errors.ts';
import type { TenantId } from '../events/index.ts';
import type { Store } from '../store/store.ts';
import type { ConversationList, ConversationListQuery } from '../troupe.ts';

const PLACE = /^(\d{1,15}):(.+)$/;

/** A page of a tenant's conversations. Throws `event_invalid` for a place that no page gave. */
export async function listConversations(
  store: Pick<Store, 'listConversations'>,
  tenant: TenantId,
  { limit = 200, before, among }: ConversationListQuery = {},
): Promise<ConversationList> {
  const { conversations, next } = await store.listConversations(tenant, {
    limit,
    ...(before !== undefined && { before: placeOf(before) }),
    ...(among && { ranges: rangesOf(among) }),
  });
  return {
    conversations: among
      ? conversations.filter(({ id }) => isGranted({ conversations: among }, id))
      : conversations,
    next: next && `${next.at}:${next.id}`,
  };
}

function placeOf(text: string): { at: number; id: string } {
  const [, at, id] = PLACE.exec(text) ?? [];
  if (at === undefined || id === undefined)
    throw new TroupeError('event_invalid', `"${text}" is no place in a list: take the "next" of a page`, {
      path: 'before',
    });
  return { at: Number(at), id };
}
