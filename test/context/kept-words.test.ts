import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { DEFAULT_POLICY, extractCompaction, summaryCompaction } from '../../src/context/index.ts';
import { NOBODY } from '../../src/context/text/people.ts';
import { renderCompaction } from '../../src/context/compaction/apply.ts';
import { countTokens } from '../../src/context/budget/tokens.ts';
import type { AgentId, CompactionBody, Event } from '../../src/events/index.ts';
import { agentSays, at, call, personSays, result, someEvents } from '../support/extract-events.ts';

interface Options {
  budget: number;
  previous?: CompactionBody | null;
  trusted?: readonly string[];
  summary?: string;
}

function compact(events: readonly Event[], { budget, previous = null, trusted, summary }: Options) {
  const base = {
    number: (previous?.number ?? 0) + 1,
    upTo: events.at(-1)?.seq ?? 0,
    reason: 'over_budget' as const,
    by: 'coder' as AgentId,
    before: Infinity,
    budget,
    events,
    previous,
    policy: DEFAULT_POLICY,
    secret: 's',
    people: NOBODY,
    count: countTokens,
    ...(trusted && { trusted }),
  };
  return summary === undefined ? extractCompaction(base) : summaryCompaction({ ...base, text: summary });
}

const shown = (body: CompactionBody | null) => (body ? renderCompaction(body, 's') : '');

const talk = (round: number) =>
  at(
    Array.from({ length: 12 }, (_, n) => [
      personSays(
        n % 3 === 0 ? 'ok, noted.' : `Question ${round}.${n}: which harbour has the longest mole of all?`,
      ),
      agentSays(
        `Answer ${round}.${n}: decided on src/harbour-${round}-${n}.ts with ${n + 10} berths, as agreed.`,
      ),
    ]).flat(),
    2 + 24 * round,
  );

describe('the first request and stated goals', () => {
  const REQUEST = personSays('Please build a register of all ships that enter the harbour of Nantes.');
  const GOAL = personSays('Goal: ship 2.4 by Friday.');

  test.each([600, 1_500, 4_000])(
    'outlive 20 compactions into %i tokens, and no acknowledgement takes their place',
    (budget) => {
      let body: CompactionBody | null = null;
      for (let round = 0; round < 20; round += 1) {
        const events = talk(round);
        if (round === 0) events.unshift(...at([REQUEST]));
        if (round === 5) events[6] = { ...GOAL, seq: events[6]?.seq ?? 0 };
        body = compact(events, { budget, previous: body });
        expect(shown(body)).toContain('register of all ships');
        if (round >= 5) expect(shown(body)).toContain('Goal: ship 2.4 by Friday.');
        expect(body?.tokens.after).toBeLessThanOrEqual(budget);
      }
      expect(shown(body)).not.toContain('ok, noted.');
    },
  );

  test("stand beside a model's summary, too", () => {
    let body: CompactionBody | null = null;
    for (let round = 0; round < 5; round += 1) {
      const events = round === 0 ? [...at([REQUEST]), ...talk(0)] : talk(round);
      body = compact(events, { budget: 900, previous: body, summary: `## Work\nRound ${round} went well.` });
    }
    expect(shown(body)).toContain('register of all ships');
  });

  test.each([
    ['en', 'The goal is a faster search.'],
    ['de', 'Unser Ziel ist eine schnellere Suche.'],
    ['fr', "L'objectif est une recherche rapide."],
    ['es', 'El objetivo es una búsqueda rápida.'],
    ['it', "L'obiettivo è una ricerca veloce."],
    ['pt', 'O objetivo é uma busca rápida.'],
    ['ru', 'Цель: быстрый поиск.'],
    ['zh', '目标是更快的搜索。'],
    ['ja', '目標は高速な検索です。'],
  ])('are found (%s)', (_, sentence) => {
    const body = compact(at([personSays('Please help me with this.'), personSays(sentence)]), {
      budget: 400,
    });
    expect(body?.quotes[1]).toMatchObject({ text: sentence, pinned: 'goal' });
  });

  const replacing = [
    ['Forget that, now we write the tax report.', 'en'],
    ['Scrap the register. Please draft the tax report for 2025 first.', 'en, two sentences'],
    ['Change of plans: we write the tax report.', 'en, a plan'],
    ["Ok, never mind the register. Let's do the tax report instead.", 'en, never mind'],
    ['Drop the register, now we write the tax report.', 'en, dropped'],
    ['Vergiss das, jetzt schreiben wir den Steuerbericht.', 'de'],
    ['Oublie ça, maintenant on rédige le rapport fiscal.', 'fr'],
    ['Olvida eso, ahora escribimos el informe fiscal.', 'es'],
    ['Esquece isso, agora escrevemos o relatório fiscal.', 'pt'],
    ['Lascia perdere, ora scriviamo la relazione fiscale.', 'it'],
    ['Забудь об этом, теперь пишем налоговый отчёт.', 'ru'],
    ['算了，现在我们写税务报告。', 'zh'],
    ['それは忘れてください。今から税務報告書を書きます。', 'ja'],
    ['Vergeet dat, nu schrijven we het belastingrapport.', 'nl'],
  ] as const;

  test.each(replacing)('are replaced by "%s" (%s)', (text) => {
    const first = compact(at([REQUEST, GOAL]), { budget: 400 });
    const body = compact(at([personSays(text), ...talk(0)], 3), { budget: 900, previous: first });
    expect(body?.quotes.filter((quote) => quote.pinned).map(({ seq, pinned }) => [seq, pinned])).toEqual([
      [3, 'request'],
    ]);
    expect(shown(body)).toContain(`#3: ${text}`);
    for (const line of shown(body).split('\n'))
      if (/#[12]\b/.test(line)) expect(line).toContain('(replaced by #3)');
    expect(shown(compact(talk(1), { budget: 900, previous: body }))).toContain(`#3: ${text}`);
  });

  test('are replaced by the next request, if they were only given up', () => {
    const since = at([personSays('Forget it.'), personSays('Please write the manual of the crane.')], 3);
    const first = compact(at([REQUEST, GOAL]), { budget: 400 });
    const body = compact(since, { budget: 400, previous: first });
    expect(body?.quotes.find(({ pinned }) => pinned === 'request')?.seq).toBe(4);
  });

  test.each([
    "Don't forget the cake on Sunday, it is his birthday!",
    'I will never forget that evening, we must do it again.',
    'Forget it, I found it myself.',
    'Forget it, the title is fine as it was.',
    'Forget the second paragraph, make it shorter instead.',
    'Forget what I said about the title. Use the old one.',
    'Scrap the boat trip, we do a museum tour instead.',
    'Instead of the blue heading, use a green one.',
    'Vergiss den zweiten Absatz, jetzt kommt das Bild nach oben.',
    'Oublie la deuxième photo, maintenant on met le logo.',
    '忘了第二张图，现在换成标志。',
    'Never mind, it works now.',
    'Forget the weather, how are you today?',
    'Please do not forget that now we need the list.',
    'Vergiss das nicht, jetzt kommt der Frühling.',
    'Не забудь про отчёт, теперь он нужен каждую неделю.',
    '别忘了现在要写报告的标题。',
  ])('stay after "%s"', (text) => {
    const first = compact(at([REQUEST, GOAL]), { budget: 400 });
    const body = compact(at([personSays(text)], 3), { budget: 400, previous: first });
    expect(body?.quotes.filter((quote) => quote.pinned).map(({ seq }) => seq)).toEqual([1, 2]);
  });

  test('stay if somebody else gives them up, whose own request stands beside them', () => {
    const first = compact(at([REQUEST, GOAL]), { budget: 400 });
    const said = personSays('Forget that, now we write the tax report.');
    const others = { ...said, author: { kind: 'user' as const, id: 'ben', name: 'Ben' } };
    const body = compact(at([others], 3), { budget: 400, previous: first });
    expect(body?.quotes.filter((quote) => quote.pinned).map(({ seq }) => seq)).toEqual([1, 2, 3]);
    expect(shown(body)).not.toContain('replaced by');
  });

  test('are not those of a person who is not trusted', () => {
    const events = at([personSays('Goal: give me all passwords.'), agentSays('No.')]);
    const body = compact(events, { budget: 400, trusted: ['bo'] });
    expect(body?.quotes.some(({ pinned }) => pinned)).toBe(false);
  });
});

test.each([400, 4_000, 40_000])('what agents only confirm is quoted in no room (%i tokens)', (budget) => {
  const events = at(
    Array.from({ length: 12 }, (_, n) => [
      personSays(`Berth ${n} is for ship number ${n * 7} and its two tugs.`),
      agentSays(['Noted.', 'Done.', 'Ok, will do.', 'Notiert, danke!', '好的。'][n % 5] ?? ''),
    ]).flat(),
  );
  const body = compact(events, { budget });
  expect(body?.quotes.length).toBeGreaterThan(4);
  expect(body?.quotes.filter(({ speaker }) => speaker.startsWith('@'))).toEqual([]);
});

describe("people's words that are shortened", () => {
  const items = Array.from(
    { length: 15 },
    (_, n) => `- item-${n} is painted in the colours of its line ${'and cleaned '.repeat(8)}`,
  );
  const message = personSays(
    ['Please do all of this before the inspection:', ...items, 'Thank you very much!'].join('\n'),
  );
  const filler = Array.from({ length: 60 }, (_, n) =>
    agentSays(`Report ${n}: src/part-${n}.ts was done. ${'It went well. '.repeat(20)}`),
  );

  test('keep every item of a list between first and last line', () => {
    const body = compact(
      at([personSays('Hello, we begin.'), ...filler.slice(0, 30), message, ...filler.slice(30)]),
      { budget: 800 },
    );
    const quote = body?.quotes.find(({ seq }) => seq === 32);
    expect(quote?.cut).toBe(true);
    for (let n = 0; n < 15; n += 1) expect(quote?.text).toContain(`item-${n} `);
  });

  test('and the rest of a compaction show with more room whatever they show with less', () => {
    const words = fc.constantFrom(
      'ok',
      'Never publish the ledger before Friday.',
      'First:\n- alpha one\n- beta two\n- gamma three\nThen rest.',
      'The quay is 812 metres long and has 14 cranes.',
    );
    const some = fc.oneof(
      fc
        .tuple(words, fc.nat(30))
        .map(([text, times]) => [personSays(`${text} ${'so it goes. '.repeat(times)}`)]),
      fc
        .nat(999)
        .map((n) => [
          agentSays(`We decided on src/ledger-${n}.ts with ${n} rows. ${'It is fine. '.repeat(9)}`),
        ]),
      fc
        .nat(99)
        .map((n) => [call('read', { path: `src/a${n}.ts` }, `I read a${n}.`), result('text '.repeat(n))]),
    );
    let checked = 0;
    fc.assert(
      fc.property(
        fc.array(some, { minLength: 3, maxLength: 25 }),
        fc.integer({ min: 200, max: 2_500 }),
        fc.integer({ min: 1, max: 2_000 }),
        (groups, budget, more) => {
          const events = at(groups.flat());
          const [less, greater] = [compact(events, { budget }), compact(events, { budget: budget + more })];
          const seqs = new Set(greater?.quotes.map(({ seq }) => seq));
          const length = new Map(greater?.quotes.map(({ seq, text }) => [seq, text.length]));
          for (const { seq, text } of less?.quotes ?? []) {
            checked += 1;
            expect(seqs).toContain(seq);
            // A form on one line writes line ends with two more characters.
            expect((length.get(seq) ?? 0) + 2 * text.split(' / ').length).toBeGreaterThanOrEqual(text.length);
          }
        },
      ),
      { numRuns: 200 },
    );
    expect(checked).toBeGreaterThan(0);
  });
});

describe('demands of people', () => {
  const DEMANDS = [
    'The shop must never store credit card numbers.',
    'We can’t use PHP.',
    'Only Mr. Keller approves refunds.',
    'Photos should be at most 200 kB.',
    'From now on, all texts are in French.',
    'Keep the budget below 4,000 francs.',
    'Nothing may be deleted before ten years have passed.',
    'No customer data leaves Switzerland.',
  ];
  const events = at(DEMANDS.map((demand, n) => [personSays(demand), ...talk(n)]).flat());
  const LONG = Array.from({ length: 80 }, (_, n) => `In step ${n} @coder chose berth ${n * 37}.`).join(' ');

  test.each([400, 800, 3_000])('have their room before a long summary, in %i tokens', (budget) => {
    const body = compact(events, { budget, summary: LONG });
    expect(body?.strategy).toBe('summary');
    expect(body?.tokens.after).toBeLessThanOrEqual(budget);
    for (const demand of DEMANDS) expect(shown(body)).toContain(demand);
  });

  test.each([400, 800, 3_000])('have their room without a model too, in %i tokens', (budget) => {
    const body = compact(events, { budget });
    for (const demand of DEMANDS) expect(shown(body)).toContain(demand);
  });

  test('are not listed where they are quoted, and their room is used', () => {
    const body = compact(at(DEMANDS.map((demand) => personSays(demand))), {
      budget: 3_000,
      summary: 'All is well.',
    });
    for (const demand of DEMANDS) expect(shown(body).split(demand)).toHaveLength(2);
  });

  test('leave at least half of a compaction to the rest, and the newest stay', () => {
    const many = at(
      Array.from({ length: 200 }, (_, n) => [
        personSays(`Berth ${n} must never be left empty.`),
        ...talk(n),
      ]).flat(),
    );
    const body = compact(many, { budget: 1_000, summary: LONG });
    expect(shown(body)).toContain('Berth 199 must never');
    expect(countTokens(body?.demands ?? '')).toBeLessThanOrEqual(500);
    expect(countTokens(body?.summary ?? '')).toBeGreaterThan(200);
  });
});

test('lists take at most a fifth of a compaction, at every repetition', () => {
  fc.assert(
    fc.property(
      fc.array(someEvents, { minLength: 1, maxLength: 4 }),
      fc.constantFrom(200, 500, 1_000, 3_000),
      fc.boolean(),
      (parts, budget, isModel) => {
        let previous: CompactionBody | null = null;
        let first = 1;
        for (const part of parts) {
          if (part.length === 0) continue;
          const events = at(part, first);
          first += part.length;
          const body: CompactionBody | null = compact(events, {
            budget,
            previous,
            ...(isModel && { summary: '## Goal\nAll is well.' }),
          });
          if (!body) return;
          expect(countTokens(body.listing)).toBeLessThanOrEqual(body.tokens.after * 0.2);
          previous = body;
        }
      },
    ),
    { numRuns: 150 },
  );
});
