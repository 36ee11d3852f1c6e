import * as z from 'zod';
import { setImmediate } from 'node:timers/promises';
import type { Context } from 'hono';
import { LRUCache } from 'lru-cache';
import type { Clock } from '../base/clock.ts';
import { TroupeError } from '../base/errors.ts';
import { partsOfThread } from '../base/thread-id.ts';
import {
  AgentId,
  type Author,
  ConversationId,
  type ConversationKind,
  DEFAULT_TENANT,
  type Event,
  kindOf,
  type TenantId,
} from '../events/index.ts';
import {
  dollarsFor,
  type PriceOf,
  rankOf,
  type Standing,
  STANDING_STATES,
  type StandingState,
  standingOf,
} from '../library/projection/standing.ts';
import type {
  CostPart,
  ListedStanding,
  NewStanding,
  StandingListQuery,
  StandingOrder,
  Troupe,
  Passage,
} from '../library/troupe.ts';
import { callerOf } from './caller.ts';
import { beginningsOf, wordsOf, addTerms, conversationTerm } from '../library/projection/search-words.ts';
import { createProjectionCache } from './projection-caches.ts';

/** What the store keeps of a conversation for the inbox. */
type StoredStanding = Standing & ConversationKind;

export interface InboxLine extends StoredStanding {
  id: ConversationId;
  head: number;
  /** Time of the last event, ms. */
  at: number;
  /** Whether the caller may answer or decide what is asked, and the ids of the people who may; none: everyone. */
  may?: MayDecide | undefined;
}

interface MayDecide {
  decide: boolean;
  by: string[];
}

export interface Inbox {
  counts: Record<StandingState, number>;
  /** Conversations with events that are not counted yet. */
  unread: number;
  /** Order of `costliest`: dollars if the price of every agent is known, else tokens. */
  costs: 'dollars' | 'tokens';
  lines: InboxLine[];
  next: string | null;
}

export interface InboxQuery {
  states?: readonly StandingState[] | undefined;
  agent?: string | undefined;
  owner?: string | undefined;
  from?: number | undefined;
  to?: number | undefined;
  /** Part of the first message or of the id, ignoring case, from the beginning of a word. */
  q?: string | undefined;
  /** Kind of conversation. Default: both. */
  kind?: ConversationKind['kind'] | undefined;
  /** Beginning of the id. */
  prefix?: string | undefined;
  order: StandingOrder;
  limit: number;
  /** Most lines of a first page in the order `urgent`, which then has every line in which somebody has to act. Default: `limit`. */
  urgent?: number | undefined;
  after?: string | undefined;
  /** Person who asks: `may` of a line then tells what they may decide. Default: `may` is absent. */
  as?: Author | undefined;
}

/** Longest wait for conversations with events since the last answer, ms. Reading continues in the background. */
const MAX_WAIT_MS = 500;
/** How long reading continues after the last answer, ms. */
const KEEP_MS = 600_000;
/** Conversations that are read before the store is asked for more. */
const SLICE = 100;

/**
 * Keeps the standings of one tenant while somebody looks at its inbox. A process whose inbox nobody asks for does nothing.
 *  K1  A process has one run at a time, and only one of several processes has one: `behind` answers the others with null.
 *  K2  A standing and its passages depend on the log alone. Any process may store them, even twice, whatever the order.
 *  K3  A run ends when nothing is behind, or when nobody has looked for `KEEP_MS`. The next look begins another run.
 *  K4  A conversation that cannot be read is skipped for the rest of the run, and stays counted as unread.
 */
export interface InboxKeeper {
  /** Resolves when the run that this call began or joined is over. Never rejects. */
  catchUp(): Promise<void>;
  /** Reads one conversation and stores its standing. Throws `conversation_unknown`. */
  read(conversation: string): Promise<StoredStanding>;
  /** Cost of a conversation with its threads. Null with `onlyKept` if it would have to be read. */
  costOf(
    row: Pick<ListedStanding, 'id' | 'head'>,
    how: { onlyKept: boolean },
  ): Promise<readonly CostPart[] | null>;
  /** Whether a person may end the oldest question or approval of a line. Null if it has already ended. */
  mayDecide(line: InboxLine, person: Author): Promise<MayDecide | null>;
}

export type KeeperOf = (context: Context) => InboxKeeper;

interface KeeperOptions {
  clock: Clock;
  signal?: AbortSignal | undefined;
  onError: (error: unknown) => void;
}

/** Most cached answers of `mayDecide`. */
const MOST_DECISIONS = 2_000;

/** Most conversations whose cost is cached. */
const MOST_COSTS = 20_000;

/** Number of tenants whose keepers are cached. */
const MAX_TENANTS = 32;

export function createInboxKeepers(root: Troupe, options: KeeperOptions): KeeperOf {
  const keepers = new LRUCache<TenantId, InboxKeeper>({
    max: MAX_TENANTS,
    memoMethod: (tenant) =>
      createInboxKeeper(tenant === DEFAULT_TENANT ? root : root.forTenant(tenant), options),
  });
  return (context) => keepers.memo(callerOf(context).principal.tenant);
}

export function createInboxKeeper(troupe: Troupe, { clock, signal, onError }: KeeperOptions): InboxKeeper {
  const cache = createProjectionCache(troupe);
  const { standings } = troupe;
  const prices = new Map(troupe.agents.map(({ id, price }) => [id as string, price]));
  const priceOf: PriceOf = (agent, tokens) => {
    const price = prices.get(agent);
    return price ? dollarsFor(tokens, price) : null;
  };
  let running: Promise<void> | null = null;
  let askedAt = 0;

  async function kindIn(conversation: string): Promise<ConversationKind> {
    const first = partsOfThread(conversation) && (await troupe.events(conversation, { limit: 1 })).events[0];
    return kindOf(conversation, first ?? undefined);
  }

  async function read(conversation: string): Promise<StoredStanding> {
    const projection = await cache.latest(conversation);
    const standing = { ...standingOf(projection, priceOf), ...(await kindIn(conversation)) };
    const agents = Object.keys(projection.agents).slice(0, MAX_AGENTS);
    await indexWords(troupe, conversation, projection.seq);
    await standings.save(conversation, rowOf(conversation, projection.seq, standing, agents));
    return standing;
  }

  async function run(): Promise<void> {
    const unreadable = new Set<string>();
    while (!signal?.aborted && clock.now() - askedAt < KEEP_MS) {
      const found = await standings.behind(SLICE + unreadable.size);
      const some = found?.filter((id) => !unreadable.has(id)) ?? [];
      if (some.length === 0) return;
      for (const id of some) {
        await read(id).catch((error: unknown) => {
          unreadable.add(id);
          if (!isUnknown(error)) onError(error);
        });
        // Lets other work run, because an embedded store never yields to the event loop.
        await setImmediate();
      }
    }
  }

  return {
    ...createLineReader(troupe),
    read,
    catchUp() {
      askedAt = clock.now();
      running ??= run()
        .catch(onError)
        .finally(() => {
          running = null;
        });
      return running;
    },
  };
}

/** Reads conversations of inbox lines, and caches the results until they have new events. */
function createLineReader(troupe: Troupe): Pick<InboxKeeper, 'mayDecide' | 'costOf'> {
  /** Keyed by the end of the log at which it was read: the home view asks again every few seconds. */
  const decisions = new LRUCache<string, MayDecide>({ max: MOST_DECISIONS });

  async function mayDecide({ id, head, asks }: InboxLine, person: Author): Promise<MayDecide | null> {
    const key = JSON.stringify([id, head, person.kind, person.id]);
    const before = decisions.get(key);
    if (before) return before;
    const { tasks } = await troupe.tasks(id, { open: true, as: person });
    const task = tasks.find((each) => each.id === asks?.task);
    if (!task) return null;
    const may = { decide: task.decidable ?? false, by: [...(task.by ?? [])] };
    decisions.set(key, may);
    return may;
  }

  /** By conversation, with the end of the log at which they were read. */
  const costs = new LRUCache<string, { head: number; parts: readonly CostPart[] }>({ max: MOST_COSTS });

  async function costOf(
    { id, head }: Pick<ListedStanding, 'id' | 'head'>,
    { onlyKept }: { onlyKept: boolean },
  ): Promise<readonly CostPart[] | null> {
    const before = costs.get(id);
    if (before?.head === head) return before.parts;
    if (onlyKept) return null;
    try {
      const { parts } = await troupe.cost(id);
      costs.set(id, { head, parts });
      return parts;
    } catch (error) {
      if (isUnknown(error)) return [];
      throw error;
    }
  }

  return { mayDecide, costOf };
}

/** Most agents by which the inbox can be filtered. */
const MAX_AGENTS = 200;

function rowOf(
  conversation: string,
  seq: number,
  standing: StoredStanding,
  agents: readonly string[],
): NewStanding {
  const { state, since, tokens, dollars, people, about } = standing;
  const words = `${conversation} ${about?.text ?? ''}`.toLowerCase();
  return {
    seq,
    rank: rankOf(state),
    since: Math.trunc(since),
    cost: tokens,
    spent: Math.round((dollars ?? 0) * 1e6),
    owner: people[0]?.id ?? '',
    agents,
    words,
    terms: [...new Set(wordsOf(words)), kindTerm(standing.kind)],
    data: JSON.stringify(standing),
  };
}

/** One page of the inbox. `troupe` is limited to what the caller may see. */
export async function readInbox(
  troupe: Troupe,
  keeper: InboxKeeper,
  clock: Clock,
  { states, q, order, kind, as, urgent = 0, ...query }: InboxQuery,
): Promise<Inbox> {
  await waitAWhile(keeper, clock);
  const isPriced = troupe.agents.length > 0 && troupe.agents.every(({ price }) => price !== null);
  const costs = isPriced ? 'dollars' : 'tokens';
  const asked: StandingListQuery = {
    ...definedOf(query),
    order: order === 'costliest' && costs === 'dollars' ? 'mostSpent' : order,
    ...(states && { ranks: states.map(rankOf) }),
    ...((q !== undefined || kind) && wordsFilter(q, kind)),
  };
  const { rows, counts, behind, next } = await troupe.standings.list(asked);
  const isFirst = order === 'urgent' && !states && query.after === undefined;
  const acting = isFirst ? URGENT.reduce((sum, state) => sum + (counts[rankOf(state)] ?? 0), 0) : 0;
  const missing = Math.min(urgent, acting) - rows.length;
  const rest =
    next !== null && missing > 0
      ? await troupe.standings.list({ ...asked, after: next, limit: missing })
      : { rows: [], next };
  const lines = await Promise.all([...rows, ...rest.rows].map((row) => lineOf(row, keeper, as)));
  return {
    counts: Object.fromEntries(
      STANDING_STATES.map((state) => [state, counts[rankOf(state)] ?? 0]),
    ) as Inbox['counts'],
    unread: behind,
    costs,
    lines: lines.filter((line) => line !== null),
    next: rest.next,
  };
}

/** States in which somebody has to act. */
const URGENT: readonly StandingState[] = ['failed', 'asks'];

/** The term that all conversations of a kind have. No word contains its `=`. */
const kindTerm = (kind: ConversationKind['kind']) => `=${kind}`;

/** A single word is found by its term alone, without reading the rows. */
function wordsFilter(q: string | undefined, kind: InboxQuery['kind']) {
  const text = q?.toLowerCase();
  const words = q === undefined ? [] : indexedTerms(q);
  const [only, ...others] = words;
  const terms = [...words, ...(kind ? [{ term: kindTerm(kind), whole: true }] : [])];
  return text === undefined || (others.length === 0 && only?.term === text) ? { terms } : { terms, text };
}

/** Index terms of a text. A first word of one or two characters is left out: alone, it may begin a longer word. */
function indexedTerms(q: string) {
  return beginningsOf(q).filter(({ term, whole }, index) => index > 0 || !whole || term.length > 2);
}

/** Waits until a keeper has caught up, but no longer than one answer may take. */
export async function waitAWhile(keeper: InboxKeeper, clock: Clock): Promise<void> {
  const over = new AbortController();
  const late = clock.sleep(MAX_WAIT_MS, over.signal);
  await Promise.race([keeper.catchUp(), late]);
  over.abort();
}

async function lineOf(
  { id, head, at, data }: ListedStanding,
  keeper: InboxKeeper,
  as: Author | undefined,
): Promise<InboxLine | null> {
  try {
    const standing = readStanding(data) ?? (await keeper.read(id));
    const line = { ...standing, id: id as ConversationId, head, at };
    const may = as && standing.asks && (await keeper.mayDecide(line, as));
    return may ? { ...line, may } : line;
  } catch (error) {
    // The conversation was deleted in the meantime.
    if (isUnknown(error)) return null;
    throw error;
  }
}

/** Null if another version has stored it in another form. */
function readStanding(data: string): StoredStanding | null {
  const parsed = StandingRecord.safeParse(JSON.parse(data));
  return parsed.success ? parsed.data : null;
}

function definedOf<T extends object>(values: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as never;
}

function isUnknown(error: unknown): boolean {
  return error instanceof TroupeError && error.code === 'conversation_unknown';
}

const Count = z.int().nonnegative();
const Time = z.number();
const Saying = z.strictObject({ name: z.string(), text: z.string() });

export const StateName = z.enum(STANDING_STATES);

export const KindName = z.enum(['conversation', 'thread']);

const STANDING = {
  kind: KindName,
  parent: ConversationId.nullable(),
  state: StateName,
  since: Time,
  began: Time,
  agents: z.array(
    z.strictObject({
      id: AgentId,
      condition: z.enum(['failed', 'waiting', 'running', 'held', 'paused', 'idle', 'retired', 'left']),
    }),
  ),
  agentCount: Count,
  people: z.array(z.strictObject({ id: z.string(), name: z.string() })),
  about: Saying.nullable(),
  last: Saying.nullable(),
  tokens: Count,
  dollars: z.number().nonnegative().nullable(),
  turns: Count,
  failedTurns: Count,
  failure: z
    .strictObject({ agent: AgentId, turn: z.string().nullable(), code: z.string(), message: z.string() })
    .nullable(),
  asks: z
    .strictObject({
      count: Count,
      task: z.string(),
      at: Time,
      agent: AgentId,
      kind: z.enum(['question', 'approval']),
      text: z.string(),
      deadline: Time.nullable(),
      decide: z.strictObject({ request: z.string(), argsHash: z.string() }).nullable(),
    })
    .nullable(),
};

/** The stored form of a standing. A standing in another form is computed anew. */
const StandingRecord: z.ZodType<StoredStanding> = z.strictObject(STANDING);

export const InboxAnswer = z.strictObject({
  counts: z.record(StateName, Count),
  unread: Count,
  costs: z.enum(['dollars', 'tokens']),
  lines: z.array(
    z.strictObject({
      ...STANDING,
      id: ConversationId,
      head: Count,
      at: Time,
      may: z.strictObject({ decide: z.boolean(), by: z.array(z.string()) }).optional(),
    }),
  ),
  next: z.string().nullable(),
});

/** Events of one passage: it begins at a multiple of this, plus 1. */
const PASSAGE_EVENTS = 32;
const PAGE = 10 * PASSAGE_EVENTS;

/**
 * Stores the passages of a log up to `head`, from the one in which its standing ends. A passage depends on the log alone, so
 * any process may store it, even twice.
 */
async function indexWords(
  { standings, passages, events }: Pick<Troupe, 'standings' | 'passages' | 'events'>,
  conversation: string,
  head: number,
): Promise<void> {
  const known = await standings.seqOf(conversation);
  if (known >= head) return;
  let after = known - (known % PASSAGE_EVENTS);
  let open: OpenPassage | null = null;
  while (after < head) {
    const page = await events(conversation, { after, limit: Math.min(PAGE, head - after) });
    const done: Passage[] = [];
    for (const event of page.events) {
      open ??= { first: event.seq, terms: new Set([conversationTerm(conversation)]) };
      addTerms(event, open.terms);
      after = event.seq;
      if (event.seq % PASSAGE_EVENTS === 0 || event.seq >= head) {
        done.push(passageOf(open, event));
        open = null;
      }
    }
    if (done.length > 0) await passages.save(conversation, done);
    if (page.events.length === 0) return;
    // Lets other work run, because an embedded store never yields to the event loop.
    await setImmediate();
  }
}

interface OpenPassage {
  first: number;
  terms: Set<string>;
}

function passageOf({ first, terms }: OpenPassage, { seq, at }: Event): Passage {
  return { first, last: seq, at, terms: [...terms] };
}
