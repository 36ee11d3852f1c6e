import { expect } from 'vitest';
import { watchLoop } from '../support/loop-turns.ts';
import { attack } from './attack.ts';
import { ANA, type AttackStage, only, openStage } from './stage.ts';
import { inPhase } from '../support/compaction-stage.ts';

/**
 * CPU time limit for one turn of the event loop: many times the work on a text of some hundred thousand letters. A
 * backtracking search takes minutes or never ends.
 */
const HELD_MS = 4_000;
const CHUNK = 100_000;

/** Each takes a different path through the readers of texts. */
const TEXTS: Readonly<Record<string, string>> = {
  'marks that are letters, behind a bracket': `<${'\u0483'.repeat(40_000)}`,
  'letters that are marks, at the start of a line': `[${'\u0345'.repeat(40_000)}`,
  'a fence that is opened and never closed': `\`\`\`json\n${'\n'.repeat(80_000)}x`,
  'calls that are written out': '<tool_call>{}</tool_call>\n'.repeat(8_000),
  'beginnings of tokens': 'eyJ-'.repeat(40_000),
  'headings with nothing under them': `Sum.${'\n#  '.repeat(20_000)}\nx`,
  'boxes behind blanks': `- [ ] ${' '.repeat(40_000)}\u2028x`,
  'one word without spaces': '書'.repeat(200_000),
};

/** Forms that somebody asks an answer to have, and an answer that takes forever to check. */
const FORMS = [
  { schema: { type: 'string', pattern: '^(a+)+$' } },
  { schema: { type: 'object', patternProperties: { '^(a+)+$': {} }, additionalProperties: false } },
];
const ENDLESS = `${'a'.repeat(60)}!`;
const IN_FORM = [JSON.stringify(ENDLESS), JSON.stringify({ [ENDLESS]: 1 })];

const REPLY = { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] };

attack(28, 'texts that are expensive to search block no other caller', async (refused) => {
  const texts = Object.values(TEXTS);
  await using stage = await openStage({
    agents: ['bo', 'cy', { id: 'di', reply: REPLY }],
    answer: ({ agent, last, messages }) => {
      const form = /in my form (\d)/.exec(last)?.[1];
      if (form !== undefined) return { text: IN_FORM[Number(form)] ?? '' };
      // Told what was wrong with its answer, it gives the same again.
      const asked = agent === 'di' ? messages.map(({ content }) => content).join(' ') : last;
      const number = /say text (\d+)/.exec(asked)?.[1];
      if (agent === 'cy' || number === undefined) return { text: agent === 'di' ? '{"n":1}' : 'fine' };
      return { text: texts[Number(number)] ?? '', chunk: CHUNK };
    },
  });
  const { turns, longestMs } = await watchLoop(async () => {
    for (const [n, text] of texts.entries()) {
      await stage.troupe.send(`p${n}`, { author: ANA, content: text, to: ['bo'] });
      await stage.troupe.send(`m${n}`, { author: ANA, content: `say text ${n}`, to: ['bo', 'di'] });
      await stage.troupe.send(`q${n}`, { author: ANA, content: 'and you?', to: ['cy'] });
    }
    for (const [n, reply] of FORMS.entries())
      await stage.troupe.send(`f${n}`, { author: ANA, content: `in my form ${n}`, to: ['bo'], reply });
    await stage.troupe.idle();
    // Messages are part of the next prompt.
    for (const n of texts.keys())
      await stage.troupe.send(`m${n}`, { author: ANA, content: 'and now?', to: ['cy'] });
    await stage.troupe.idle();
  });
  for (const n of texts.keys()) {
    expect(await endings(stage, `p${n}`)).toHaveLength(1);
    expect(await endings(stage, `q${n}`)).toEqual(['cy turn.done']);
    expect(await endings(stage, `m${n}`)).toEqual([
      'bo turn.done',
      expect.stringMatching(/^cy turn\.(?:done|failed)$/),
      'di turn.failed',
    ]);
    for (const { body } of only(await stage.events(`m${n}`), 'turn.failed'))
      refused(`turn.failed ${body.code}`);
  }
  for (const n of FORMS.keys()) expect(await endings(stage, `f${n}`)).toEqual(['bo turn.done']);
  expect(turns).toBeGreaterThan(texts.length);
  expect(longestMs).toBeLessThan(HELD_MS);
  expect(stage.errors).toEqual([]);
});

/** A window that a dozen of `prose` overflow. */
const SMALL = { contextWindow: 8_000, maxOutputTokens: 1_000 };
const FILLER = 'as was agreed before, the harbour office keeps its books in the second drawer; ';
const prose = (letters: number) => FILLER.repeat(Math.ceil(letters / FILLER.length)).slice(0, letters);

const THINGS = 'books maps keys letters ropes lamps flags coins charts seals stamps nets sails'.split(' ');

/** Like a summary, which repeats nothing. */
function summaryOf(letters: number): string {
  const thing = (n: number) => THINGS[n % THINGS.length] ?? '';
  const lines = Array.from(
    { length: Math.ceil(letters / 50) },
    (_, n) =>
      `the ${thing(n)} of ${letters + n} lie in the second drawer beside the ${thing(n * 2)} of ${letters - n}; `,
  );
  return lines.join('').slice(0, letters);
}

/** Too long by less than half, so that it is shortened after its headings. */
const CUT = `${summaryOf(600)}${'\n# a \t '.repeat(40)}\n${summaryOf(1_400)}\n\n${summaryOf(1_800)}`;

attack(
  28,
  'a summary that is expensive to search is shortened or refused, and the turn continues',
  async (refused) => {
    const texts = [CUT, 'x'.repeat(600_000), ...Object.values(TEXTS)];
    await using stage = await openStage({
      agents: [{ id: 'bo', ...SMALL }, 'cy', 'scribe'],
      company: { context: { summariser: 'scribe' } },
      answer: ({ agent, messages }) => {
        if (agent !== 'scribe') return { text: 'fine' };
        const number = messages.map(({ content }) => /I want text (\d+)z/.exec(content)?.[1]).find(Boolean);
        return { text: texts[Number(number)] ?? '', chunk: CHUNK };
      },
    });
    const { longestMs } = await watchLoop(async () => {
      for (const n of texts.keys()) {
        const conversation = `s${n}`;
        await stage.troupe.send(conversation, { author: ANA, content: `I want text ${n}z.`, to: ['bo'] });
        await stage.troupe.idle();
        for (let i = 0; i < 18; i++)
          await stage.troupe.send(conversation, { author: ANA, content: `${i}: ${prose(1_600)}`, to: [] });
        await stage.troupe.send(conversation, { author: ANA, content: 'and now?', to: ['bo'] });
        await stage.troupe.send(`q${n}`, { author: ANA, content: 'and you?', to: ['cy'] });
      }
      await stage.troupe.idle();
    });
    expect(stage.sentBy('scribe').length).toBeGreaterThanOrEqual(texts.length);
    for (const n of texts.keys()) {
      expect(await endings(stage, `s${n}`)).toEqual(['bo turn.done', 'bo turn.done']);
      expect(await endings(stage, `q${n}`)).toEqual(['cy turn.done']);
      const failed = inPhase(await stage.events(`s${n}`), 'failed');
      for (const { body } of failed) refused(body.message ?? '');
      const [written] = only(await stage.events(`s${n}`), 'compaction');
      if (n === 0) expect(written?.body.summary.split('\n').at(-1) ?? '').toContain('second drawer');
      if (n === 1) expect(failed[0]?.body.message).toContain('too_long');
    }
    expect(longestMs).toBeLessThan(HELD_MS);
    expect(stage.errors).toEqual([]);
  },
);

async function endings(stage: AttackStage, conversation: string): Promise<string[]> {
  const events = await stage.events(conversation);
  const ends = events.filter(({ kind }) => kind.startsWith('turn.') && kind !== 'turn.started');
  return ends.map(({ author, kind }) => `${author.id} ${kind}`).toSorted();
}
