import { isGranted, rangesOf } from '../access/index.ts';
import type { FoundPassage } from '../../store/passages.ts';
import type { PassageRepository, StandingRepository } from '../troupe.ts';
import { findConversation, type TenantContext } from './tenant-context.ts';
import { TroupeError } from '../../base/errors.ts';
import { STANDING_ORDERS, type StandingOrder, type StandingPlace } from '../../store/standings.ts';

export function passageRepository(context: TenantContext): PassageRepository {
  const { parts, tenant } = context;
  const { store } = parts.deps;

  /** Ids of the conversations whose state has one of the ranks. */
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

/** How long one process alone stores the states of a tenant's conversations, ms. */
const HOLD_MS = 1_000;

export function standingRepository(context: TenantContext): StandingRepository {
  const { parts, tenant } = context;
  const { store, clock, process: owner } = parts.deps;
  let heldUntil = 0;

  async function isMine(): Promise<boolean> {
    const now = clock.now();
    if (now < heldUntil) return true;
    const until = now + HOLD_MS;
    if (!(await store.claim(`standings:${tenant}`, { owner, now, until }))) return false;
    heldUntil = until;
    return true;
  }

  return {
    async list({ order = 'urgent', limit = 50, after, prefix, among, ranks, ...rest } = {}) {
      const patterns = narrowed(prefix, among);
      const filter = { ...rest, tenant, ...(patterns && { ranges: rangesOf(patterns) }) };
      const [page, counted] = await Promise.all([
        store.inbox.standings({
          ...filter,
          ...(ranks && { ranks }),
          order,
          limit,
          ...(after !== undefined && { after: parsePlace(after, order) }),
        }),
        store.inbox.countStandings(filter),
      ]);
      const { next } = page;
      return {
        rows: among ? page.rows.filter(({ id }) => isGranted({ conversations: among }, id)) : page.rows,
        counts: counted.ranks,
        behind: counted.behind,
        next: next && `${next.keys.join('.')}:${next.id}`,
      };
    },
    behind: async (limit) => ((await isMine()) ? store.inbox.behind({ tenant, limit }) : null),
    async seqOf(conversation) {
      const { head: _, ...log } = await findConversation(context, conversation);
      return store.inbox.standingSeq(log);
    },
    async save(conversation, standing) {
      const { head: _, ...log } = await findConversation(context, conversation);
      await store.inbox.saveStanding(log, standing);
    },
  };
}

function narrowed(prefix: string | undefined, among: readonly string[] | undefined) {
  if (prefix === undefined) return among;
  if (!among) return [`${prefix}*`];
  return among.flatMap((pattern) => {
    const beginning = pattern.endsWith('*') ? pattern.slice(0, -1) : pattern;
    if (beginning.startsWith(prefix)) return [pattern];
    return pattern.endsWith('*') && prefix.startsWith(beginning) ? [`${prefix}*`] : [];
  });
}

const PLACE = /^(-?\d{1,16})(?:\.(-?\d{1,16}))?:(.{1,256})$/;

function parsePlace(text: string, order: StandingOrder): StandingPlace {
  const [, first, second, id] = PLACE.exec(text) ?? [];
  const keys = [first, second].filter((key) => key !== undefined).map(Number);
  if (id !== undefined && keys.length === STANDING_ORDERS[order].keys.length) return { keys, id };
  const message = `"${text.slice(0, 100)}" is not a position in this list: use the "next" of a page of the same order`;
  throw new TroupeError('event_invalid', message, { path: 'after' });
}
