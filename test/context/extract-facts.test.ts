import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { countTokens } from '../../src/context/budget/tokens.ts';
import { collectFacts } from '../../src/context/extract/facts.ts';
import { renderFacts } from '../../src/context/extract/render-facts.ts';
import type { Event, Facts } from '../../src/events/index.ts';
import { HAS_DATA, realLogs } from '../support/real-logs.ts';
import {
  agentSays,
  at,
  call,
  delegation,
  personSays,
  result,
  someEvents,
} from '../support/extract-events.ts';
import { cpuMsOf } from '../support/cpu-ms.ts';

const NONE: Facts = {
  artifacts: [],
  filesRead: [],
  filesModified: [],
  identifiers: [],
  errors: [],
  constraints: [],
  pending: [],
};
const collect = (...events: Event[]) => collectFacts(at(events), null);
/** Each text as Uma said it. */
const saidByUma = (texts: readonly string[]) =>
  texts.map((text) => ({ text, by: { kind: 'user' as const, id: 'uma', name: 'Uma' } }));

const textsOf = (entries: Facts['pending'] | undefined) => entries?.map(({ text }) => text);

describe('facts', () => {
  test.each([
    ['en', 'You must never push to main.'],
    ['en, a request', "please don't touch the tests."],
    ['en, a refusal', 'No, I will not pay for that.'],
    ['en, a preference', 'I prefer the aisle seat.'],
    ['en, an inability', 'We can’t use PHP.'],
    ['en, a limit', 'Keep the whole budget below 4,000 francs.'],
    ['en, a ban', 'Nothing may be deleted before ten years have passed.'],
    ['en, a title', 'Only Mr. Keller approves refunds.'],
    ['en, a rule', 'From now on, all texts are in French.'],
    ['en, a labelled rule', 'Rule: each page has a title.'],
    ['en, a date', 'The launch is on 1 October and no later.'],
    ['en, a request for a form', 'Please answer in German.'],
    ['en, an allergy', 'I’m allergic to peanuts.'],
    ['de, a date', 'Der Bericht kommt spätestens am 3. Mai.'],
    ['fr, a rule', 'Désormais, les textes sont en français.'],
    ['es, a ban', 'En ningún caso borres la base.'],
    ['ru, a date', 'Сайт открывается не позднее мая.'],
    ['zh, a limit', '图片不超过两百千字节。'],
    ['de', 'Bitte nicht die Datenbank löschen.'],
    ['fr', 'Il ne faut jamais appeler le client.'],
    ['es', 'Por favor, no borres nada.'],
    ['pt', 'Você deve usar apenas a versão dois.'],
    ['it', 'Non cancellare i file.'],
    ['ru', 'Никогда не удаляй логи.'],
    ['zh', '请不要修改配置文件。'],
    ['ja', 'テストは変更しないでください。'],
  ])('carry what people demand (%s)', (_, sentence) => {
    const { constraints } = collect(personSays(`Here is the weather. ${sentence} Thanks.`));
    expect(constraints).toEqual([{ text: sentence, by: { kind: 'user', id: 'ana', name: 'Ana' } }]);
  });

  test.each([
    "I can't wait for the weekend.",
    "I can't believe it.",
    'The weather may change.',
    'I want to go home.',
  ])('do not take "%s" for a demand', (sentence) => {
    expect(collect(personSays(sentence)).constraints).toEqual([]);
  });

  test("list a demand that an agent quotes as a claim of that agent, and not the agent's notes and questions to itself", () => {
    const facts = collect(
      agentSays(
        'You asked me to never use tabs. I should look at the file. Would you prefer that, as you said?',
      ),
    );
    expect(facts.constraints).toEqual([]);
    expect(facts.claims).toEqual([
      { text: 'You asked me to never use tabs.', by: { kind: 'agent', id: 'coder', name: 'Coder' } },
    ]);
  });

  test.each([
    ['en', 'We still need to port the selector.'],
    ['en, a mark', 'TODO: write the changelog'],
    ['de', 'Die Tests fehlen noch und müssen noch laufen.'],
    ['fr', 'Il reste à écrire la documentation.'],
    ['es', 'Queda por revisar el informe.'],
    ['pt', 'Ainda falta o relatório.'],
    ['it', 'Resta da fare la verifica.'],
    ['ru', 'Осталось проверить отчёт.'],
    ['zh', '下一步是更新文档。'],
    ['ja', 'ドキュメントはまだです。'],
  ])('carry what is still to do (%s)', (_, sentence) => {
    expect(textsOf(collect(agentSays(`All is well.\n${sentence}`)).pending)).toEqual([sentence]);
  });

  test('drop ticked boxes and completed to-dos, and keep the others', () => {
    const todos = (status: string) => call('TodoWrite', { todos: [{ content: 'ship it', status }] });
    const open = [agentSays('- [ ] one\n- [ ] two'), todos('pending')];
    expect(textsOf(collect(...open).pending)).toEqual(['one', 'two', 'ship it']);
    const before = collectFacts(at(open), null);
    const after = collectFacts(at([agentSays('- [x] one'), todos('completed')]), before);
    expect(textsOf(after.pending)).toEqual(['two']);
  });

  test('keep a question open until another participant has spoken, and a delegation until it ends', () => {
    const asked = collect(agentSays('Shall I deploy?'), delegation('opened', 'd1', 'check the build'));
    expect(textsOf(asked.pending)).toEqual(['Shall I deploy?', 'delegation d1 to @coder: check the build']);
    expect(renderFacts(asked, 100, countTokens)).toContain('- [@coder] Shall I deploy?\n');
    expect(collectFacts(at([agentSays('Waiting.')]), asked).pending).toEqual(asked.pending);
    expect(
      collectFacts(at([personSays('Yes.'), delegation('completed', 'd1', 'ok')]), asked).pending,
    ).toEqual([]);
  });

  test('distinguish the files that a call reads from those that it changes', () => {
    const facts = collect(
      call('read', { path: 'src/a.ts' }),
      call('Edit', { file_path: '/repo/src/b.ts', old_string: 'x/y.ts', new_string: 'z' }),
      call('apply_patch', { patch: '*** Update File: src/c.ts\n+x\n+++ b/src/d.ts' }),
      call('bash', { command: 'cd /repo/app && grep -n foo src/e.ts > out/f.txt; rm lib/g.js' }),
      call('search_flight', { origin: 'JFK', date: '2024-05-20' }),
    );
    expect(facts.filesModified).toEqual(
      expect.arrayContaining(['/repo/src/b.ts', 'src/c.ts', 'src/d.ts', 'out/f.txt', 'lib/g.js']),
    );
    expect(facts.filesRead).toEqual(expect.arrayContaining(['src/a.ts', 'src/e.ts']));
    expect(facts.filesModified).not.toContain('src/a.ts');
    expect(facts.filesRead).not.toContain('JFK');
  });

  test('find ids anywhere, names of code in speech only, artifacts and paths; what only a result says is met in passing', () => {
    const facts = collect(
      personSays('Order #W4923227, ticket ABC-123, see `runTurn()` and build_prompt in @artifact/abc-1.'),
      result('{"reservation_id": "HATHAT", "user_id": "mia_li_3668", "first_name": "Mia"}', 'done', 'art-2'),
      result('at 7f9c2ba4e88f827d616045507605853ed73b8093 src/deep/file.ts:12:3 snake_noise'),
    );
    expect(facts.identifiers).toEqual(
      expect.arrayContaining(['#W4923227', 'ABC-123', 'runTurn()', 'build_prompt']),
    );
    expect(facts.passing).toEqual(
      expect.arrayContaining([
        'HATHAT',
        'mia_li_3668',
        '7f9c2ba4e88f827d616045507605853ed73b8093',
        'src/deep/file.ts',
      ]),
    );
    expect([...facts.identifiers, ...(facts.passing ?? [])]).not.toContain('snake_noise');
    expect(facts.artifacts).toEqual(['@artifact/abc-1', '@artifact/art-2']);
  });

  test('read the code in arguments as it was meant, not as JSON writes it', () => {
    const facts = collect(call('write', { path: 'x.sh', content: "cd a\nsrc/b.ts\t'c/d.ts'\n" }));
    expect(facts.passing).toEqual(['src/b.ts', 'c/d.ts']);
  });

  test('take one line per error, and none from code that handles errors', () => {
    const facts = collect(
      result('> build\nsrc/a.ts(3,1): error TS2739: Type is missing\nmore', 'failed'),
      result('ls: cannot access x: No such file or directory\nexit 2', 'failed'),
      result('Traceback (most recent call last):\n  File "x.py"\nValueError: bad input'),
      result('  } catch (error: any) {\n  isError: boolean;\n  error: ColorSchema,'),
    );
    expect(textsOf(facts.errors)).toEqual([
      'src/a.ts(3,1): error TS2739: Type is missing',
      'ls: cannot access x: No such file or directory',
      'ValueError: bad input',
    ]);
  });

  test('keep everything from the previous compaction that events do not settle, close or replace', () => {
    const words = fc.array(fc.string({ minLength: 1, maxLength: 30, unit: 'grapheme' }), { maxLength: 5 });
    const sayings = words.map(saidByUma);
    const previous = fc.record({
      artifacts: words,
      filesRead: words,
      filesModified: words,
      identifiers: words,
      errors: sayings,
      constraints: sayings,
      pending: words.map((tasks) => saidByUma(tasks.map((task) => `task ${task}`))),
    });
    fc.assert(
      fc.property(previous, someEvents, (known, events) => {
        const facts = collectFacts(events, known);
        for (const list of Object.keys(NONE) as (keyof typeof known)[])
          expect(facts[list]).toEqual(expect.arrayContaining<unknown>(known[list]));
      }),
    );
  });

  /** A call and its result are in one part. */
  const pairSafe = (events: readonly Event[], cut: number): number =>
    events[cut]?.kind === 'tool.result' ? pairSafe(events, cut - 1) : cut;

  test('are the same when collected in two parts', () => {
    fc.assert(
      fc.property(someEvents, fc.nat(), (events, cut) => {
        const half = pairSafe(events, cut % (events.length + 1));
        const first = collectFacts(events.slice(0, half), null);
        expect(collectFacts(events.slice(half), first)).toEqual(collectFacts(events, null));
      }),
    );
  });

  test.runIf(HAS_DATA)('of a real session are the same when collected in two parts', async () => {
    const [log = []] = await realLogs('pi-large-session.jsonl');
    const all = collectFacts(log, null);
    for (const cut of [1, 77, 250, 600, log.length - 1]) {
      const half = pairSafe(log, cut);
      expect(collectFacts(log.slice(half), collectFacts(log.slice(0, half), null))).toEqual(all);
    }
  });

  // The bound is far above the usual time (about 0.2 s) and far below that of one slow pattern (minutes).
  test.each([
    'a',
    '.',
    '/',
    '?! ',
    '"id": "',
    '`',
    '-_',
    'aB',
    '[ ] ',
    '@a',
    '\\n',
    'must ',
    '不',
    '(error: ',
    '1:2',
  ])('take no longer by the character for a megabyte of %j than for a part of it', async (piece) => {
    const cpuMs = (length: number) => {
      const text = piece.repeat(length / piece.length);
      return cpuMsOf(() => collect(personSays(text), result(text, 'failed'), agentSays(`x\n${text}`)));
    };
    await cpuMs(125_000);
    // Eight times the input: quadratic code takes sixty-four times as long. Times of a few ms are noise.
    expect((await cpuMs(1_000_000)) / Math.max(await cpuMs(125_000), 20)).toBeLessThan(24);
  });
});

/** Joined texts cost more than their parts. */
const overCounting = (text: string) => Math.ceil(text.length ** 1.3 / 4);

describe('facts as text', () => {
  const facts: Facts = {
    ...NONE,
    constraints: saidByUma(['never push', 'only on Monday']),
    filesRead: ['b/c.ts', 'a/b/c.ts'],
    identifiers: ['c.ts', 'runTurn', 'runTurn()', 'W123456'],
  };

  test('name every entry once, and a path by its longest form', () => {
    expect(renderFacts(facts, 1_000, countTokens)).toBe(
      'Constraints and preferences:\n- [Uma] never push\n- [Uma] only on Monday\nFiles read: a/b/c.ts\nAlso named: runTurn(), W123456',
    );
  });

  test('stay within any budget and give each entry whole or not at all', () => {
    const texts = fc.array(
      fc.string({ minLength: 1, unit: 'grapheme' }).map((text) => text.replace(/\s/g, '_')),
    );
    fc.assert(
      fc.property(
        fc.record({ constraints: texts, errors: texts, identifiers: texts }),
        fc.nat(200),
        (some, budget) => {
          const said = { constraints: saidByUma(some.constraints), errors: saidByUma(some.errors) };
          const lists = { ...NONE, ...some, ...said };
          const text = renderFacts(lists, budget, countTokens);
          expect(countTokens(text)).toBeLessThanOrEqual(budget);
          expect(overCounting(renderFacts(lists, budget, overCounting))).toBeLessThanOrEqual(budget);
          const known = new Set([...some.constraints, ...some.errors].map((each) => `[Uma] ${each}`));
          for (const [, entry = ''] of text.matchAll(/^- (.*)$/gm)) expect(known).toContain(entry);
        },
      ),
    );
  });

  test('first omit what the text beside them says', () => {
    const two = { ...NONE, constraints: saidByUma(['never push to main', 'always run the tests']) };
    const text = renderFacts(two, 28, countTokens, { shown: 'Ana: always run the tests' });
    expect(text).toContain('never push to main');
    expect(text).not.toContain('always run the tests');
    expect(text).toContain('1 more not listed');
  });
});
