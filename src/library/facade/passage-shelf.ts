import { isGranted, rangesOf } from '../access/index.ts';
import type { FoundPassage } from '../../store/passages.ts';
import type { PassageShelf } from '../troupe.ts';
import { findConversation, type TenantContext } from './tenant-context.ts';

export function passageShelf(context: TenantContext): PassageShelf {
  const { parts, tenant } = context;
  const { store } = parts.deps;

  /** Ids of those whose standing has one of the ranks. */
  async function ofRank(found: readonly FoundPassage[], ranks: readonly number[]): Promise<Set<string>> {
    const ids = [...new Set(found.map(({ id }) => id))];
    const query = { tenant, ranks, ranges: ids.map(exactly), order: 'newest', limit: ids.length } as const;
    return new Set((await store.inbox.standings(query)).rows.map(({ id }) => id));
  }

  return {
    async find({ conversation, ranks, among, limit, ...query }) {
      const ranges = conversation === undefined ? among && rangesOf(among) : [exactly(conversation)];
      const found = await store.inbox.findPassages({ ...query, tenant, limit, ...(ranges && { ranges }) });
      const wanted = ranks && (await ofRank(found, ranks));
      const isWanted = (id: string) =>
        (!among || isGranted({ conversations: among }, id)) && (!wanted || wanted.has(id));
      return {
        passages: found.filter(({ id }) => isWanted(id)),
        next: found.length < limit ? null : (found.at(-1)?.place ?? null),
      };
    },
    async save(conversation, passages) {
      const { head: _, ...log } = await findConversation(context, conversation);
      await store.inbox.savePassages(log, passages);
    },
  };
}

const exactly = (id: string) => ({ from: id, to: `${id}\0` });
