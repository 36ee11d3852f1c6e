import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { countTokens } from '../../src/context/budget/tokens.ts';
import { extractKeyMessages } from '../../src/context/extract/key-messages.ts';
import { quoteTokens } from '../../src/context/extract/pricing.ts';
import type { Event, Quote } from '../../src/events/index.ts';
import {
  agentSays,
  at,
  call,
  delegation,
  personSays,
  result,
  someEvents,
} from '../support/extract-events.ts';
import { HAS_DATA, realLogs } from '../support/real-logs.ts';

const extract = (events: readonly Event[], budget: number, quotes: readonly Quote[] = []) =>
  extractKeyMessages({ events, previous: { quotes }, budget, count: countTokens });
const seqs = (quotes: readonly Quote[]) => quotes.map(({ seq }) => seq);
const costOf = (quotes: readonly Quote[]) =>
  quotes.reduce((sum, quote) => sum + quoteTokens(quote, countTokens), 0);

describe('key messages', () => {
  test('stay within the budget, ascending, once each, explained, and deterministic', () => {
    fc.assert(
      fc.property(someEvents, fc.nat(2_500), (events, budget) => {
        const found = extract(events, budget);
        expect(costOf(found.quotes)).toBe(found.tokens);
        expect(found.tokens).toBeLessThanOrEqual(budget);
        expect(seqs(found.quotes)).toEqual([...new Set(seqs(found.quotes))].toSorted((a, b) => a - b));
        expect(found.chosen.map(({ seq }) => seq)).toEqual(seqs(found.quotes));
        for (const { score, why } of found.chosen) {
          const sum = why.reduce((total, part) => total + Number(part.split(' ').at(-1)), 0);
          expect(score).toBeCloseTo(sum, 5);
        }
        expect(extract(events, budget)).toEqual(found);
      }),
    );
  });

  test('are all of it, whole, if everything fits', () => {
    const read = [call('read', { path: 'a.ts' }), result('text')];
    const events = at([personSays('Hi'), ...read, agentSays('Done with a.ts')]);
    const { quotes } = extract(events, 1_000);
    expect(quotes).toEqual([
      { seq: 1, speaker: 'Ana', text: 'Hi' },
      { seq: 2, speaker: '@coder', text: 'read path=a.ts -> done\ntext' },
      { seq: 4, speaker: '@coder', text: 'Done with a.ts' },
    ]);
  });

  test('are verbatim unless they are marked as cut', () => {
    fc.assert(
      fc.property(someEvents, fc.nat(2_500), (events, budget) => {
        for (const { seq, text, cut } of extract(events, budget).quotes) {
          const event = events.find((one) => one.seq === seq);
          if (event?.kind === 'message' && !cut) expect(text).toBe(event.body.content);
        }
      }),
    );
  });

  test('name the speaker and the recipients', () => {
    const events = at([personSays('Do it', ['coder']), agentSays('I ask Bob', ['bob'])]);
    expect(extract(events, 1_000).quotes.map(({ speaker }) => speaker)).toEqual([
      'Ana>@coder',
      '@coder>@bob',
    ]);
  });

  test("keep people's words, the newest first, and beside many decisions of agents a third of the room", () => {
    const chatter = Array.from({ length: 20 }, (_, n) => [
      personSays(`Person number ${n} says something of middling length here.`),
      agentSays(`You must know: decision ${n} in src/file-${n}.ts is final and approved.`),
    ]).flat();
    const { quotes } = extract(at(chatter), 700);
    const people = quotes.filter(({ speaker }) => speaker === 'Ana');
    expect(costOf(people)).toBeLessThanOrEqual(700 * 0.6);
    expect(costOf(people)).toBeGreaterThan(700 * 0.33);
    expect(seqs(people)).toEqual(seqs(people).map((_, index) => 39 - 2 * (people.length - 1 - index)));
  });

  test('keep delegations and handoffs when longer talk is dropped', () => {
    const talk = Array.from({ length: 30 }, () => agentSays('well '.repeat(60)));
    const events = at([delegation('opened', 'd1', 'check the build'), ...talk]);
    expect(extract(events, 400).quotes[0]).toEqual({
      seq: 1,
      speaker: '@coder',
      text: '(delegation d1 to @coder) check the build',
    });
  });

  test('show a failed call with its error, and omit a large result', () => {
    const big = 'line of output\n'.repeat(400);
    const events = at([
      call('bash', { command: 'make' }, 'I build it.'),
      result(`${big}make: Error: no rule\n${big}`, 'failed'),
      call('bash', { command: 'ls' }),
      result(big),
    ]);
    const { quotes } = extract(events, 300);
    expect(quotes[0]?.text).toBe('I build it. / bash make -> failed: make: Error: no rule');
    expect(quotes[1]?.text).toBe('bash ls -> done');
  });

  test('contain the head and the tail of one huge message', () => {
    const { quotes, tokens } = extract(at([personSays(`START ${'x y '.repeat(50_000)} END`)]), 300);
    expect(quotes).toHaveLength(1);
    expect(quotes[0]?.cut).toBe(true);
    expect(quotes[0]?.text).toMatch(/^START .*END$/s);
    expect(tokens).toBeGreaterThan(100);
  });

  test('contain both ends of several huge messages, the newest first where they do not all fit', () => {
    const events = at(Array.from({ length: 9 }, (_, n) => personSays(`N${n} ${'x y '.repeat(9_000)}`)));
    expect(seqs(extract(events, 800).quotes)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
    const few = seqs(extract(events, 180).quotes);
    expect(few).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9].slice(9 - few.length));
    expect(seqs(extract(events, 10).quotes)).toEqual([]);
  });

  test('lose no earlier quote while it fits', () => {
    fc.assert(
      fc.property(someEvents, someEvents, fc.integer({ min: 200, max: 2_500 }), (early, late, budget) => {
        const first = extract(early, budget);
        const since = at(late, early.length + 1);
        const all = first.tokens + extract(since, 1_000_000).tokens;
        const second = extract(since, all, first.quotes);
        expect(second.quotes.slice(0, first.quotes.length)).toEqual(first.quotes);
        const tight = extract(since, budget, first.quotes);
        expect(tight.tokens).toBeLessThanOrEqual(budget);
      }),
    );
  });

  test("prefer people's earlier words to later words of agents", () => {
    const before: Quote[] = [{ seq: 1, speaker: 'Ana', text: 'The deadline is Friday.' }];
    const since = at(
      Array.from({ length: 30 }, (_, n) => agentSays(`Reply number ${n} goes on about it.`)),
      2,
    );
    expect(extract(since, 200, before).quotes[0]).toEqual(before[0]);
  });

  test.runIf(HAS_DATA)("of a real session keep a person's words within every budget", async () => {
    const [log = []] = await realLogs('pi-large-session.jsonl');
    const people = log.filter(({ author, kind }) => author.kind === 'user' && kind === 'message');
    for (const budget of [500, 3_000, 12_000, 40_000]) {
      const { quotes, tokens } = extract(log, budget);
      expect(tokens).toBeLessThanOrEqual(budget);
      expect(tokens).toBeGreaterThan(budget * 0.9);
      const kept = new Set(seqs(quotes));
      if (budget >= 12_000) expect(people.filter(({ seq }) => !kept.has(seq))).toEqual([]);
    }
  });
});
