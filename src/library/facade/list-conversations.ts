import { TroupeError } from '../../base/errors.ts';
import { partsOfThread } from '../../base/thread-id.ts';
import { type ConversationKind, kindOf, type TenantId } from '../../events/index.ts';
import type { ConversationLine, Store } from '../../store/store.ts';
import { isGranted, rangesOf } from '../access/index.ts';
import type { ConversationInfo, ConversationList, ConversationListQuery } from '../troupe.ts';

/** Most conversations that are examined for a page of one kind, and most reads of the list. */
const MOST_LOOKED_AT = 1_000;
const MOST_READS = 20;

type Lists = Pick<Store, 'listConversations' | 'read'>;

/**
 * One page of a tenant's conversations. A page of one kind may be short, because only a bounded number is examined.
 * Throws `event_invalid` for a cursor that no page returned.
 */
export async function listConversations(
  store: Lists,
  tenant: TenantId,
  { limit = 200, before, among, kind }: ConversationListQuery = {},
): Promise<ConversationList> {
  const found: ConversationInfo[] = [];
  const ranges = among && rangesOf(among);
  let place = before === undefined ? null : parseCursor(before);
  let looked = 0;
  for (let reads = 1; ; reads += 1) {
    const { conversations, next } = await store.listConversations(tenant, {
      limit: limit - found.length,
      ...(place && { before: place }),
      ...(ranges && { ranges }),
    });
    looked += conversations.length;
    const granted = among
      ? conversations.filter(({ id }) => isGranted({ conversations: among }, id))
      : conversations;
    const infos = await withKinds(store, tenant, granted);
    found.push(...infos.filter((each) => kind === undefined || each.kind === kind));
    place = next;
    const isEnough = kind === undefined || found.length * 2 >= limit || looked >= MOST_LOOKED_AT;
    if (isEnough || !next || reads === MOST_READS)
      return { conversations: found, next: next && `${next.at}:${next.id}` };
  }
}

/** The lines with their kinds. Reads a log only if the id has the form of a thread's. */
export async function withKinds(
  store: Pick<Store, 'read'>,
  tenant: TenantId,
  lines: readonly ConversationLine[],
): Promise<ConversationInfo[]> {
  return Promise.all(
    lines.map(async ({ id, head, at }) => ({ id, head, at, ...(await kindIn(store, tenant, id)) })),
  );
}

async function kindIn(
  store: Pick<Store, 'read'>,
  tenant: TenantId,
  conversation: ConversationLine['id'],
): Promise<ConversationKind> {
  if (!partsOfThread(conversation)) return kindOf(conversation, undefined);
  const [first] = await store.read({ tenant, conversation }, { after: 0, limit: 1 });
  return kindOf(conversation, first);
}

const PAGE_CURSOR = /^(\d{1,15}):(.+)$/;

function parseCursor(text: string): { at: number; id: string } {
  const [, at, id] = PAGE_CURSOR.exec(text) ?? [];
  if (at !== undefined && id !== undefined) return { at: Number(at), id };
  const message = `"${text}" is not a position in the list: use the "next" of a page`;
  throw new TroupeError('event_invalid', message, { path: 'before' });
}
