import { countTokens } from '../../src/context/budget/tokens.ts';
import { DEFAULT_POLICY, extractCompaction, summaryCompaction } from '../../src/context/index.ts';
import { renderCompaction } from '../../src/context/compaction/apply.ts';
import { collectFacts } from '../../src/context/extract/facts.ts';
import { eventText } from '../../src/context/text/event-text.ts';
import { peopleOf } from '../../src/context/text/people.ts';
import type { AgentId, CompactionBody, Event, EventDraft } from '../../src/events/index.ts';
import { below, pick, type Random, randomOf } from '../../sim/random.ts';
import { HAS_DATA, realLogs } from '../../test/support/real-logs.ts';
import { atLeast, atMost, figure, type Figure, type Scored, Shares } from '../figure.ts';
import {
  CORRECTION_PAIRS,
  CORRECTION_PAIRS_ELSEWHERE,
  DEMANDS,
  EXCEPTION_PAIRS,
  GOAL_PAIRS,
} from '../judged-pairs.ts';
import type { Options } from '../options.ts';

/** What a compaction judges: which goal and which word holds, and what is a demand. Logs are made from a seed. */
const BUDGET = 1_200;
const ROUNDS = 5;
const SECRET = 'score';
const ANA = { kind: 'user', id: 'ana', name: 'Ana' } as const;
const BEN = { kind: 'user', id: 'ben', name: 'Ben' } as const;
const AGENT = { kind: 'agent', id: 'assistant', name: 'assistant' } as const;
const NAMES = ['Orion', 'Kestrel', 'Juniper', 'Marlow', 'Tamarind', 'Vesper', 'Halcyon', 'Quill'];
const PLACES = ['harbour', 'library', 'greenhouse', 'workshop', 'archive', 'bakery', 'observatory'];

type Author = typeof ANA | typeof BEN | typeof AGENT;

class Log {
  readonly events: Event[] = [];

  say(author: Author, content: string): void {
    const seq = this.events.length + 1;
    const envelope = { id: `e${seq}`, to: [], tenant: 'default', conversation: 'c' };
    const draft = { kind: 'message', author, body: { content } } as unknown as EventDraft;
    this.events.push({
      ...envelope,
      ...draft,
      seq,
      tokens: countTokens(content),
      at: seq * 60_000,
    } as unknown as Event);
  }

  /** Neutral talk of work, which demands nothing and changes no goal. */
  fill(random: Random, rounds: number): void {
    for (let n = 0; n < rounds; n += 1) {
      const [place, number] = [pick(random, PLACES), 100 + below(random, 900)];
      this.say(ANA, `The ${place} had ${number} visitors, and ${below(random, 90)} of them came by boat.`);
      this.say(AGENT, `The count of the ${place} is in the table, next to the ${number} of last week.`);
    }
  }
}

type Way = 'troupe' | "beside a model's summary" | 'last messages' | 'no compaction';
const WAYS: readonly Way[] = ['troupe', "beside a model's summary", 'last messages', 'no compaction'];

/**
 * The log as each way shows it after five compactions, and what it holds for demands: those that the words beside them have to the
 * letter are not written twice.
 */
function shownBy(way: Way, log: Log): { text: string; held: string[]; body: CompactionBody | null } {
  const { events } = log;
  if (way === 'no compaction') return { text: events.map(eventText).join('\n'), held: [], body: null };
  if (way === 'last messages') return { text: lastOf(events), held: [], body: null };
  let body: CompactionBody | null = null;
  const size = Math.ceil(events.length / ROUNDS);
  for (let from = 0; from < events.length; from += size) {
    const part = events.slice(from, from + size);
    const base: Parameters<typeof extractCompaction>[0] = {
      number: (body?.number ?? 0) + 1,
      upTo: part.at(-1)?.seq ?? 1,
      reason: 'over_budget' as const,
      by: 'assistant' as AgentId,
      before: Infinity,
      budget: BUDGET,
      events: part,
      previous: body,
      policy: DEFAULT_POLICY,
      secret: SECRET,
      people: peopleOf(events),
      count: countTokens,
    };
    const text = `## Work\nVisitors were counted up to event ${base.upTo}.`;
    body = way === 'troupe' ? extractCompaction(base) : summaryCompaction({ ...base, text });
  }
  const held = (body?.facts.constraints ?? []).map((demand) => demand.text);
  return { text: body ? renderCompaction(body, SECRET) : '', held, body };
}

function lastOf(events: readonly Event[]): string {
  const kept: string[] = [];
  let left = BUDGET;
  for (const event of events.toReversed()) {
    left -= event.tokens;
    if (left < 0) break;
    kept.unshift(eventText(event));
  }
  return kept.join('\n');
}

/** Fills the places of a wording. */
function filled(random: Random): (wording: string) => string {
  const [name, first] = [pick(random, NAMES), 1_000 + below(random, 4_000)];
  const second = first + 1 + below(random, 4_000);
  return (wording) =>
    wording
      .replaceAll(/(?<![\p{Lu}\p{Ll}])N(?![\p{Lu}\p{Ll}'])/gu, name)
      .replaceAll(/(?<![\p{Lu}\p{Ll}])A(?![\p{Lu}\p{Ll}])/gu, `${first}`)
      .replaceAll(/(?<![\p{Lu}\p{Ll}])B(?![\p{Lu}\p{Ll}])/gu, `${second}`);
}

export async function scoreGoals({ seed, quick }: Options): Promise<Scored> {
  const random = randomOf(seed, 'judgement');
  const shares = new Shares();
  for (let round = 0; round < (quick ? 1 : 5); round += 1)
    for (const pair of GOAL_PAIRS) {
      const [old = '', replacing = ''] = pair.map(filled(random));
      const log = new Log();
      log.say(ANA, old);
      log.fill(random, 12);
      log.say(ANA, replacing);
      log.fill(random, 40);
      for (const way of WAYS) {
        const { text, body } = shownBy(way, log);
        shares.add(`${way}: the new request is there`, text.includes(replacing));
        shares.add(`${way}: the old one is gone, or shown as replaced`, isGone(text, old));
        if (body)
          shares.add(
            `${way}: the new one is the request`,
            body.quotes.some((quote) => quote.pinned === 'request' && quote.text === replacing),
          );
      }
    }
  const goals = WAYS.slice(0, 2).flatMap((way) =>
    [
      'the new request is there',
      'the old one is gone, or shown as replaced',
      'the new one is the request',
    ].map((what) => [`${way}: ${what}`, atLeast(1)] as const),
  );
  return { figures: shares.figures(Object.fromEntries(goals)), violations: [] };
}

function isGone(text: string, old: string): boolean {
  return text.split('\n').every((line) => !line.includes(old) || line.includes('(replaced by #'));
}

function correctedLog(random: Random, old: string, { newer, by }: { newer: string; by: Author }): Log {
  const log = new Log();
  log.fill(random, 4);
  log.say(ANA, old);
  log.fill(random, 8);
  log.say(by, newer);
  log.fill(random, 40);
  return log;
}

export async function scoreCorrections({ seed, quick }: Options): Promise<Scored> {
  const random = randomOf(seed, 'judgement');
  const shares = new Shares();
  for (let round = 0; round < (quick ? 1 : 3); round += 1)
    for (const [language, pairs] of Object.entries(CORRECTION_PAIRS))
      for (const pair of pairs) {
        const [old = '', newer = ''] = pair.map(filled(random));
        for (const who of [ANA, BEN]) {
          const log = correctedLog(random, old, { newer, by: who });
          for (const way of WAYS) {
            const { text, held, body } = shownBy(way, log);
            if (who === BEN) {
              if (body) shares.add(`${way}: others take nothing back`, text.includes(old));
              continue;
            }
            shares.add(`${way}: the newer word is there`, text.includes(newer));
            if (body) shares.add(`${way}: the older is no demand any more`, !held.includes(old));
            if (way === 'troupe') shares.add(`  ${language}`, text.includes(newer) && !held.includes(old));
          }
        }
      }
  for (const pair of Object.values(CORRECTION_PAIRS_ELSEWHERE).flat()) {
    const [old = '', newer = ''] = pair.map(filled(random));
    const events = correctedLog(random, old, { newer, by: ANA }).events;
    const held = collectFacts(events, null).constraints.map(({ text }) => text);
    shares.add('in eleven more languages, before a compaction', held.includes(newer) && !held.includes(old));
  }
  for (const pair of EXCEPTION_PAIRS) {
    const [rule = '', exception = ''] = pair.map(filled(random));
    const log = correctedLog(random, rule, { newer: exception, by: ANA });
    for (const way of WAYS) {
      const { text, held, body } = shownBy(way, log);
      const stands = text.includes(rule) && (body === null || held.includes(rule));
      shares.add(`${way}: a rule outlives an exception`, stands);
    }
  }
  const goals = WAYS.slice(0, 2).flatMap((way) => [
    [`${way}: the newer word is there`, atLeast(0.95)] as const,
    [`${way}: the older is no demand any more`, atLeast(0.9)] as const,
    [`${way}: others take nothing back`, atLeast(1)] as const,
    [`${way}: a rule outlives an exception`, atLeast(1)] as const,
  ]);
  const elsewhere = { 'in eleven more languages, before a compaction': atLeast(0.9) };
  return { figures: shares.figures({ ...Object.fromEntries(goals), ...elsewhere }), violations: [] };
}

const TALK = ['locomo/26.json', 'locomo/30.json', 'locomo/41.json'];
/** One message in so many is a demand. */
const EVERY = 25;
const IN_4K = 3_000;

/** Demands among the talk of friends: what is taken for one, and which are kept. */
export async function scorePrecision({ seed, quick }: Options): Promise<Scored> {
  if (!HAS_DATA) return { figures: [], violations: [], skipped: 'no ../shared/data' };
  const random = randomOf(seed, 'judgement');
  const figures: Figure[] = [];
  let [right, found, planted, kept, asked, talked] = [0, 0, 0, 0, 0, 0];
  for (const file of quick ? TALK.slice(0, 1) : TALK)
    for (const talk of await realLogs(file)) {
      const demands = new Set<string>();
      const log = new Log();
      for (const event of talk) {
        if (event.kind !== 'message') continue;
        talked += 1;
        log.say(talked % 2 === 0 ? BEN : ANA, event.body.content);
        if (below(random, EVERY) !== 0) continue;
        const demand = filled(random)(pick(random, DEMANDS['en'] ?? []));
        demands.add(demand);
        log.say(ANA, demand);
      }
      const { constraints } = collectFacts(log.events, null);
      found += constraints.length;
      right += constraints.filter(({ text }) => demands.has(text)).length;
      planted += demands.size;
      const [first] = demands;
      const body = extractCompaction({
        number: 1,
        upTo: log.events.length,
        reason: 'over_budget',
        by: 'assistant' as AgentId,
        before: Infinity,
        budget: IN_4K,
        events: log.events,
        previous: null,
        policy: DEFAULT_POLICY,
        secret: SECRET,
        people: peopleOf(log.events),
        count: countTokens,
      });
      asked += 1;
      if (first !== undefined && body && renderCompaction(body, SECRET).includes(first)) kept += 1;
    }
  figures.push(figure('messages between friends', talked, 'count'));
  figures.push(figure('of what is taken for a demand, what is one', right / found, 'share', atLeast(0.9)));
  figures.push(figure('of the demands among it, found', right / planted, 'share', atLeast(0.95)));
  figures.push(figure('  demands', planted, 'count'));
  figures.push(
    figure(
      'taken for demands in 1,000 messages of talk',
      ((found - right) * 1_000) / talked,
      'count',
      atMost(6),
    ),
  );
  figures.push(
    figure('the oldest demand is in a compaction of 3,000 tokens', kept / asked, 'share', atLeast(1)),
  );
  return { figures, violations: [] };
}

export async function scoreLanguages({ seed, quick }: Options): Promise<Scored> {
  const random = randomOf(seed, 'judgement');
  const all = new Shares();
  const shares = new Shares();
  for (let round = 0; round < (quick ? 1 : 5); round += 1)
    for (const [language, wordings] of Object.entries(DEMANDS))
      for (const wording of wordings) {
        const demand = filled(random)(wording);
        const log = new Log();
        log.fill(random, 3);
        log.say(ANA, demand);
        const isFound = collectFacts(log.events, null).constraints.some(({ text }) => text === demand);
        all.add('demands found, of 19 languages', isFound);
        shares.add(`  ${language}`, isFound);
      }
  const goals = { 'demands found, of 19 languages': atLeast(0.95) };
  return { figures: [...all.figures(goals), ...shares.figures()], violations: [] };
}
