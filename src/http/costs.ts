import * as z from 'zod';
import type { Clock } from '../base/clock.ts';
import type { Standing } from '../library/projection/standing.ts';
import type { CostPart, ListedStanding, Troupe } from '../library/troupe.ts';
import type { InboxKeeper } from './inbox.ts';

const Money = z.number().nullable();
const Count = z.number().nonnegative();

const CostGroup = z.strictObject({
  /** Name of an agent or a model, id of a person, or a day. */
  name: z.string(),
  /** What people call it: name of the person. Absent: nothing else. */
  title: z.string().optional(),
  /** US dollars; null if no price is known. */
  usd: Money,
  calls: Count,
  /** Model calls without a known price. */
  unknown: Count,
  /** US dollars that the vendor's cache saved. */
  saved: z.number(),
  /** Tokens: input not from a cache, input from a cache, output. */
  fresh: Count,
  cached: Count,
  output: Count,
  /** US dollars for compaction summaries, and for calls that failed. */
  summaries: Count,
  failures: Count,
});
type CostGroup = z.infer<typeof CostGroup>;

export const CostsAnswer = z.strictObject({
  total: CostGroup,
  agents: z.array(CostGroup),
  models: z.array(CostGroup),
  /** Grouped by the first person who wrote in the conversation. */
  people: z.array(CostGroup),
  days: z.array(CostGroup),
  /** Conversations of the period that are not counted yet; a further request counts more. */
  unread: Count,
});
export type CostsAnswer = z.infer<typeof CostsAnswer>;

/** Longest time one answer may take, ms; the next request continues. */
const MAX_MS = 1_500;
const PAGE = 100;
/** A conversation that was still waiting for its threads may have begun this long before the period. */
const LOOK_BACK_MS = 86_400_000;
const MOST_PEOPLE = 100;

/** The cost of all conversations of a tenant on the days from `from` on. A conversation is read again when it has new events. */
export async function readCosts(
  troupe: Troupe,
  keeper: InboxKeeper,
  clock: Clock,
  from: number,
): Promise<CostsAnswer> {
  const began = clock.monotonic();
  const first = dayOf(from);
  const sums = newSums();
  let unread = 0;
  let after: string | undefined;
  for (let next: string | null = ''; next !== null;) {
    const page = await troupe.standings.list({
      order: 'newest',
      limit: PAGE,
      from: Math.max(0, from - LOOK_BACK_MS),
      terms: [{ term: '=conversation', whole: true }],
      ...(after !== undefined && { after }),
    });
    for (const row of page.rows) {
      const isLate = clock.monotonic() - began > MAX_MS;
      const parts = await keeper.costOf(row, { onlyKept: isLate });
      if (parts === null) unread += 1;
      for (const part of parts ?? []) if (part.day >= first) sums.add(part, row);
    }
    next = page.next;
    after = next ?? undefined;
  }
  return { ...sums.report(), unread };
}

const dayOf = (at: number) => new Date(at).toISOString().slice(0, 10);

function newSums() {
  const total = newGroup('');
  const by = { agents: new Map(), models: new Map(), people: new Map(), days: new Map() } satisfies Record<
    string,
    Map<string, CostGroup>
  >;
  const sorted = (groups: Map<string, CostGroup>) =>
    [...groups.values()].toSorted((a, b) => (b.usd ?? 0) - (a.usd ?? 0) || tokensOf(b) - tokensOf(a));
  return {
    add(part: CostPart, { owner, data }: Pick<ListedStanding, 'owner' | 'data'>): void {
      addPart(total, part);
      addPart(groupIn(by.agents, part.agent), part);
      addPart(groupIn(by.models, part.model), part);
      addPart(groupIn(by.days, part.day), part);
      const person = groupIn(by.people, owner);
      if (owner !== '') person.title ??= (JSON.parse(data) as Partial<Standing>).people?.[0]?.name;
      addPart(person, part);
    },
    report: () => ({
      total,
      agents: sorted(by.agents),
      models: sorted(by.models),
      people: sorted(by.people).slice(0, MOST_PEOPLE),
      days: [...by.days.values()].toSorted((a, b) => (a.name < b.name ? 1 : -1)),
    }),
  };
}

function newGroup(name: string): CostGroup {
  return {
    name,
    usd: null,
    calls: 0,
    unknown: 0,
    saved: 0,
    fresh: 0,
    cached: 0,
    output: 0,
    summaries: 0,
    failures: 0,
  };
}

function groupIn(groups: Map<string, CostGroup>, name: string): CostGroup {
  const group = groups.get(name) ?? newGroup(name);
  groups.set(name, group);
  return group;
}

const tokensOf = ({ fresh, cached, output }: CostGroup) => fresh + cached + output;

function addPart(group: CostGroup, { usd, calls, unknown, saved, usage, outcome }: CostPart): void {
  if (usd !== null) group.usd = (group.usd ?? 0) + usd;
  group.calls += calls;
  group.unknown += unknown;
  group.saved += saved;
  group.fresh += Math.max(0, usage.input - usage.cacheRead);
  group.cached += usage.cacheRead;
  group.output += usage.output;
  if (outcome === 'summarised') group.summaries += usd ?? 0;
  if (outcome === 'failed') group.failures += usd ?? 0;
}
