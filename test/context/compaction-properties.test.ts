import fc from 'fast-check';
import { expect, test } from 'vitest';
import { countTokens } from '../../src/context/budget/tokens.ts';
import {
  type CompactionBase,
  DEFAULT_POLICY,
  extractCompaction,
  roomOf,
  scaledPolicy,
  summaryCompaction,
} from '../../src/context/index.ts';
import { NOBODY } from '../../src/context/text/people.ts';
import { renderCompaction } from '../../src/context/compaction/apply.ts';
import type { AgentId, CompactionBody, Event } from '../../src/events/index.ts';
import { invalidities } from '../support/check-prompt.ts';
import { says } from '../support/engine-models.ts';
import { openStage } from '../support/engine-stage.ts';
import { agentSays, at, call, personSays, result } from '../support/extract-events.ts';
import { moves, RandomRun } from '../support/random-run.ts';
import { mind, of, prose, small, SUMMARY } from '../support/compaction-stage.ts';

const SECRET = 's';

const words = fc.constantFrom(
  'Never publish the ledger before Friday.',
  'The error was ENOENT: no such file, open "/srv/books/1887.csv".',
  'See src/harbour/ledger.ts and @artifact/art-1.',
  'Please count the ships and tell me how many there are?',
  'TODO: paint the mole. Ticket PROJ-1234.',
  'ok',
  '港口办公室的账簿在第二个抽屉里。',
);
const length = fc.constantFrom(0, 0, 3, 20);
const text = fc
  .tuple(words, length)
  .map(([said, times]) => `${said} ${'and so on as before; '.repeat(times)}`.trim());
const some: fc.Arbitrary<Event[]> = fc.oneof(
  { weight: 4, arbitrary: text.map((said) => [personSays(said)]) },
  { weight: 3, arbitrary: text.map((said) => [agentSays(said)]) },
  {
    weight: 2,
    arbitrary: fc
      .tuple(text, text)
      .map(([said, found]) => [call('read_file', { path: '/srv/books/1887.csv' }, said), result(found)]),
  },
);
const events = fc.array(some, { minLength: 1, maxLength: 14 }).map((groups) => groups.flat());
const budget = fc.constantFrom(200, 400, 900, 2_500, 9_000);

interface Two {
  first: CompactionBody;
  second: CompactionBody;
  all: Event[];
  budget: number;
}

type Strategy = 'summary' | 'long summary' | 'extraction';

function compact(base: CompactionBase, strategy: Strategy): CompactionBody | null {
  if (strategy === 'extraction') return extractCompaction(base);
  return summaryCompaction({ ...base, text: strategy === 'summary' ? SUMMARY : SUMMARY.repeat(8) });
}

/** Two compactions of one conversation; the second covers the rest of the first and all newer events. */
function twice(one: Event[], more: Event[], room: number, strategies: [Strategy, Strategy]): Two | null {
  const old = at(one);
  const since = at(more, old.length + 1);
  const base: CompactionBase = {
    number: 1,
    upTo: old.length,
    reason: 'over_budget',
    by: 'bo' as AgentId,
    before: 100_000,
    budget: room,
    events: old,
    previous: null,
    policy: scaledPolicy(DEFAULT_POLICY, 100_000),
    secret: SECRET,
    people: NOBODY,
    count: countTokens,
  };
  const first = compact(base, strategies[0]);
  if (!first) return null;
  const upTo = old.length + since.length;
  const second = compact({ ...base, number: 2, upTo, events: since, previous: first }, strategies[1]);
  return second && { first, second, all: [...old, ...since], budget: room };
}

const strategy = fc.constantFrom<Strategy>('summary', 'long summary', 'extraction');
const two = fc.tuple(events, events, budget, fc.tuple(strategy, strategy));
const RUNS = { numRuns: 150 };

test('the second compaction loses no fact of the first except completed tasks and settled errors', () => {
  let facts = 0;
  fc.assert(
    fc.property(two, (args) => {
      const made = twice(...args);
      if (!made) return;
      const { pending: _, errors: __, passing = [], ...kept } = made.first.facts;
      for (const [list, entries = []] of Object.entries(kept)) {
        facts += entries.length;
        const known = made.second.facts[list as keyof typeof kept] ?? [];
        expect(known).toEqual(expect.arrayContaining([...entries]));
      }
      const { identifiers, filesRead, filesModified, passing: still = [] } = made.second.facts;
      expect([...identifiers, ...filesRead, ...filesModified, ...still]).toEqual(
        expect.arrayContaining(passing),
      );
    }),
    RUNS,
  );
  expect(facts).toBeGreaterThan(0);
});

test("the first request is kept, and all of people's words where there is room", () => {
  let small = 0;
  fc.assert(
    fc.property(events, events, budget, (one, more, room) => {
      const made = twice(one, more, room, ['summary', 'summary']);
      if (!made) return;
      const { second, all } = made;
      const said = all.filter(({ author }) => author.kind === 'user');
      const request = said.find(({ body }) => 'content' in body && body.content !== 'ok');
      const kept = second.quotes.filter(({ speaker }) => !speaker.startsWith('@')).map(({ seq }) => seq);
      if (room >= 9_000) expect(kept).toEqual(said.map(({ seq }) => seq));
      if (kept.length < said.length) small += 1;
      if (request && room >= 400) expect(kept).toContain(request.seq);
    }),
    RUNS,
  );
  expect(small).toBeGreaterThan(0);
});

test('a quote is verbatim or marked as shortened', () => {
  fc.assert(
    fc.property(two, (args) => {
      const made = twice(...args);
      for (const { quotes } of made ? [made.first, made.second] : []) {
        for (const { seq, text: quoted, cut } of quotes) {
          const event = made?.all.find((each) => each.seq === seq);
          if (!cut && event?.kind === 'message') expect(quoted).toBe(event.body.content);
        }
      }
    }),
    RUNS,
  );
});

test('no compaction is larger than its room, and its stated cost is its real cost', () => {
  let large = 0;
  fc.assert(
    fc.property(two, (args) => {
      const made = twice(...args);
      if (!made) return;
      for (const body of [made.first, made.second]) {
        expect(body.tokens.after).toBeLessThanOrEqual(made.budget);
        expect(body.tokens.after).toBe(countTokens(renderCompaction(body, SECRET)));
      }
      if (made.second.tokens.after > made.budget * 0.8) large += 1;
    }),
    RUNS,
  );
  expect(large).toBeGreaterThan(0);
});

test('after a compaction a request is valid and as large as announced', () => {
  const crowded = fc.tuple(moves, fc.constantFrom(300, 1_500, 4_000));
  let rewritten = 0;
  fc.assert(
    fc.property(crowded, ([all, available]) => {
      const policy = scaledPolicy(DEFAULT_POLICY, available);
      const room = roomOf({ available, fixed: 0, ratio: 1, reason: 'over_budget' }, policy);
      const filler = ` ${'as was said before in so many words '.repeat(12)}`;
      const { player } = new RandomRun({ filler, compaction: () => ({ policy, room }) }).play(all);
      const cuts = new Map<string, number>();
      for (const { agent, prompt } of player.sent) {
        expect(invalidities(prompt.messages)).toEqual([]);
        const made = prompt.cuts.length - (cuts.get(agent) ?? 0);
        cuts.set(agent, prompt.cuts.length);
        expect(made).toBeLessThanOrEqual(1);
        if (made !== 1) continue;
        rewritten += 1;
        const others = prompt.layers.filter(({ stability }) => stability === 'epoch' || stability === 'step');
        const beside = others.reduce((sum, { tokens }) => sum + tokens, 0);
        expect(prompt.cuts.at(-1)?.tokens.after).toBe(prompt.tokens.total - beside);
      }
    }),
    { numRuns: 80 },
  );
  expect(rewritten).toBeGreaterThan(0);
});

test('consecutive compactions read every message once', async () => {
  const round = fc.array(fc.integer({ min: 200, max: 4_000 }), { minLength: 1, maxLength: 12 });
  let made = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(round, { minLength: 3, maxLength: 6 }), async (rounds) => {
      const bo = mind({ turn: () => says('so be it') });
      const stage = await openStage({ agents: [small('bo', bo)] });
      let n = 0;
      for (const sizes of rounds) {
        for (const size of sizes) await stage.say('c', prose((n += 1), size), []);
        await stage.say('c', `question ${n}`, ['bo']);
        await stage.quiet();
      }
      const compactions = await of(stage, 'compaction');
      const messages = await of(stage, 'message');
      expect(bo.summaries()).toHaveLength(compactions.length);
      let after = 0;
      for (const [index, { body }] of compactions.entries()) {
        made += 1;
        const read = bo.summaries()[index]?.messages[1]?.content ?? '';
        // Quotations of earlier events have their number; these have none.
        const begun = [...read.matchAll(/^\[[^\n\]#]+\] (w\d+z|question \d+)/gm)].map(
          ([, words]) => words ?? '-',
        );
        const beginning = ({ body: { content } }: (typeof messages)[number]) => content.split(/(?<=z) |$/)[0];
        const entries = begun
          .flatMap((words) => messages.filter((each) => beginning(each) === words))
          .map(({ seq }) => seq);
        const between = messages.filter(
          ({ seq, body: { content } }) => seq > after && seq <= body.upTo && content !== 'so be it',
        );
        expect(entries).toEqual(between.map(({ seq }) => seq));
        after = body.upTo;
      }
      expect(bo.asked()).toHaveLength(rounds.length);
      expect(await stage.check('c')).toEqual([]);
    }),
    { numRuns: 25 },
  );
  expect(made).toBeGreaterThan(0);
});
