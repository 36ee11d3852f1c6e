import { isGranted, rangesOf } from '../access/index.ts';
import { TroupeError } from '../errors.ts';
import {
  type ListedStanding,
  STANDING_ORDERS,
  type StandingFilter,
  type StandingOrder,
  type StandingPlace,
  type StandingRow,
} from '../store/standings.ts';
import { findConversation, type TenantContext } from './tenant-context.ts';

export type { ListedStanding, StandingOrder, StandingRow } from '../store/standings.ts';

/** Which standings to list, and in which order. */
export interface StandingListQuery extends Omit<StandingFilter, 'tenant' | 'ranges'> {
  /** Default `urgent`: by rank, then the newest. */
  order?: StandingOrder;
  /** Most standings of the page. Default 50. */
  limit?: number;
  /** `next` of the previous page of the same order. */
  after?: string;
  /** Only ids that begin with this. */
  prefix?: string;
  /** Only these conversations and their threads: ids, or prefixes that end with `*`. Default: all. */
  among?: readonly string[];
}

/** A page of standings. */
export interface StandingList {
  /** In the order asked for. */
  rows: ListedStanding[];
  /** Number of standings by rank, whatever ranks and page were asked for. */
  counts: number[];
  /** Number of conversations with events that no standing takes into account yet. */
  behind: number;
  /** Pass it as `after` to get the next page. Null: this was the last page. */
  next: string | null;
}

/** Where each conversation of a tenant stands, as a reader of logs has stored it: the server of the inbox does. */
export interface StandingShelf {
  /** One page. Throws `event_invalid` for an `after` that no page returned. */
  list(query?: StandingListQuery): Promise<StandingList>;
  /** Ids of conversations whose standing is to be stored anew, the newest first. Null: another process does that now. */
  behind(limit: number): Promise<string[] | null>;
  /** Stores one. Throws `conversation_unknown`. */
  save(conversation: string, standing: StandingRow): Promise<void>;
}

/** How long one process stores the standings of a tenant before another may. */
const HOLD_MS = 5_000;

export function standingShelf(context: TenantContext): StandingShelf {
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
        store.standings({
          ...filter,
          ...(ranks && { ranks }),
          order,
          limit,
          ...(after !== undefined && { after: parsePlace(after, order) }),
        }),
        store.countStandings(filter),
      ]);
      const { next } = page;
      return {
        rows: among ? page.rows.filter(({ id }) => isGranted({ conversations: among }, id)) : page.rows,
        counts: counted.ranks,
        behind: counted.behind,
        next: next && `${next.keys.join('.')}:${next.id}`,
      };
    },
    behind: async (limit) => ((await isMine()) ? store.behind({ tenant, limit }) : null),
    async save(conversation, standing) {
      const { head: _, ...log } = await findConversation(context, conversation);
      await store.saveStanding(log, standing);
    },
  };
}

/** Patterns of the granted ids that begin with `prefix`. */
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
