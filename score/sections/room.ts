import * as z from 'zod';
import { countTokens } from '../../src/context/budget/tokens.ts';
import type { TroupeInput } from '../../src/library/config/agents-file.ts';
import { createTroupe } from '../../src/library/runtime/create-troupe.ts';
import type { Troupe } from '../../src/library/troupe.ts';
import { defineTool } from '../../src/tools/tool.ts';
import { below, pick, type Random, randomOf } from '../../sim/random.ts';
import { atLeast, figure, median, type Scored, Shares } from '../figure.ts';
import type { Options } from '../options.ts';

/**
 * How much of its window an agent gets that reads more files in one step than have room, and what stays of a person's newest words.
 * Files and words are made from a seed.
 */
const ANA = { kind: 'user', id: 'ana', name: 'Ana' } as const;
const ROOM = 'room';
const OUTPUT = 1_000;
const SYLLABLES = ['ka', 'lo', 'mir', 'ten', 'vu', 'sha', 'pol', 'dri', 'qua', 'nes', 'bo', 'zel'];

/** Files of one step, and their tokens. Together they are larger than the window, the last also as previews. */
const READS = [
  { window: 16_000, files: 6, tokens: 4_000 },
  { window: 16_000, files: 20, tokens: 1_500 },
  { window: 16_000, files: 60, tokens: 1_000 },
  { window: 64_000, files: 34, tokens: 2_400 },
  { window: 64_000, files: 12, tokens: 20_000 },
] as const;
type Read = (typeof READS)[number];

interface File {
  text: string;
  first: string;
  last: string;
}

function fileOf(random: Random, tokens: number): File {
  const lines: string[] = [];
  let left = tokens;
  while (left > 0) {
    const words = Array.from({ length: 4 + below(random, 12) }, () => wordOf(random));
    const line = `${lines.length + 1}: ${words.join(' ')}`;
    left -= countTokens(line);
    lines.push(line);
  }
  return { text: lines.join('\n'), first: lines[0] ?? '', last: lines.at(-1) ?? '' };
}

function wordOf(random: Random): string {
  return Array.from({ length: 1 + below(random, 3) }, () => pick(random, SYLLABLES)).join('');
}

function companyOf(window: number, files: readonly File[]): TroupeInput {
  const read = defineTool({
    name: 'read',
    description: 'Reads a file.',
    schema: z.object({ file: z.number() }),
    run: ({ file }) => files[file]?.text ?? '',
  });
  const calls = files.map((_, file) => ({ name: 'read', args: { file } }));
  return {
    tools: [read],
    agents: [
      {
        id: 'reader',
        provider: 'scripted',
        contextWindow: window,
        maxOutputTokens: OUTPUT,
        tools: ['read'],
        script: {
          rules: [{ when: { contains: 'Read them', step: 1 }, calls }, { reply: 'I have read them.' }],
        },
      },
    ],
    context: { summaries: 'extract' },
  };
}

/** What each file is shown as; '' if it is not. */
type Shown = string[];

/** The newest that have room whole, as a window of the last messages shows them. */
function newestThatFit(files: readonly File[], room: number): Shown {
  let left = room;
  const from = files.findLastIndex(({ text }) => (left -= countTokens(text)) < 0) + 1;
  return files.map(({ text }, at) => (at >= from ? text : ''));
}

/** All or nothing: a request that is too long is refused. */
function allOrNothing(files: readonly File[], room: number): Shown {
  const isRefused = files.reduce((sum, { text }) => sum + countTokens(text), 0) > room;
  return files.map(({ text }) => (isRefused ? '' : text));
}

/** The results in the request after the step that read them. */
async function shownBy(troupe: Troupe): Promise<{ shown: Shown; isDone: boolean; ids: string[] }> {
  await troupe.send(ROOM, { author: ANA, to: ['reader'], content: 'Read them, all of them.' });
  await troupe.idle();
  const { events } = await troupe.events(ROOM, { limit: 1_000 });
  const isDone = events.some(({ kind }) => kind === 'turn.done');
  const results = events.flatMap((event) => (event.kind === 'tool.result' ? [event] : []));
  const ids = results.map(({ id, body }) => body.artifact ?? id);
  if (!isDone) return { shown: results.map(() => ''), isDone, ids };
  const { messages } = await troupe.promptOf(`${ROOM}:reader:1`);
  return { shown: messages.flatMap(({ role, content }) => (role === 'tool' ? [content] : [])), isDone, ids };
}

async function scoreRead(random: Random, read: Read, shares: Shares): Promise<number> {
  const { window, tokens } = read;
  const files = Array.from({ length: read.files }, () => fileOf(random, tokens));
  await using troupe = await createTroupe(companyOf(window, files), { onWarning: () => {} });
  const { shown, isDone, ids } = await shownBy(troupe);
  shares.add('troupe: the turn ends', isDone);
  const room = window - OUTPUT;
  const ways = {
    troupe: shown,
    'newest that fit': newestThatFit(files, room),
    'no compaction': allOrNothing(files, room),
    "a model's summary": files.map(() => ''),
  };
  for (const [way, texts] of Object.entries(ways))
    for (const [at, { text, first, last }] of files.entries()) {
      const seen = texts[at] ?? '';
      shares.add(`${way}: the head of a file is shown`, seen.includes(first.slice(0, 40)));
      shares.add(`${way}: its tail`, seen.includes(last.slice(-40)));
      if (way !== 'troupe') continue;
      const isWhole = seen === text;
      shares.add('troupe: whole, or with the id to read the rest', isWhole || seen.includes(ids[at] ?? '?'));
      shares.add(
        'troupe: whole, or with the size of all of it',
        isWhole || seen.includes(`of ${Buffer.byteLength(text)} bytes`),
      );
    }
  return shown.reduce((sum, text) => sum + countTokens(text), 0) / room;
}

const TALK =
  'The people of the harbour count the boats of each day before noon, and then they go home again.';

/** A person's last two messages, of up to 200 words, in a window that agents' lists and talk have filled. */
async function scoreLastWords(random: Random, shares: Shares): Promise<void> {
  const window = 8_000;
  const last = [0, 1].map((n) => {
    const words = Array.from({ length: 60 + below(random, 140) }, () => wordOf(random));
    return `Part ${n + 1}: ${words.join(' ')}.`;
  });
  const list = Array.from({ length: 30 }, (_, n) => `- [ ] ${n}: count the ${wordOf(random)} of the harbour`);
  const script = { rules: [{ reply: `${TALK}\n\nRemaining:\n${list.join('\n')}` }] };
  const agents: TroupeInput['agents'] = [
    { id: 'reader', provider: 'scripted', contextWindow: window, maxOutputTokens: OUTPUT, script },
  ];
  const definition: TroupeInput = { agents, context: { summaries: 'extract', retrieval: false } };
  await using troupe = await createTroupe(definition, { onWarning: () => {} });
  const say = async (content: string, to: string[] = []) => {
    await troupe.send(ROOM, { author: ANA, to, content });
    await troupe.idle();
  };
  for (let n = 0; n < 12; n += 1) await say(`${n}. ${TALK.repeat(6)}`, n % 2 === 0 ? ['reader'] : []);
  for (const words of last) await say(words);
  await say('What did I say?', ['reader']);
  const { messages } = await troupe.prompt(ROOM, 'reader');
  const text = messages.map(({ content }) => content).join('\n');
  for (const words of last)
    shares.add("troupe: a person's last two messages are whole", text.includes(words));
}

export async function scoreRoom({ seed, quick }: Options): Promise<Scored> {
  const random = randomOf(seed, 'room');
  const shares = new Shares();
  const used: number[] = [];
  for (let round = 0; round < (quick ? 1 : 4); round += 1) {
    for (const read of READS) used.push(await scoreRead(random, read, shares));
    await scoreLastWords(random, shares);
  }
  const goals = [
    'the turn ends',
    'the head of a file is shown',
    'its tail',
    'whole, or with the id to read the rest',
    'whole, or with the size of all of it',
    "a person's last two messages are whole",
  ].map((what) => [`troupe: ${what}`, atLeast(1)] as const);
  return {
    figures: [
      figure('troupe: room that the files have, median', median(used), 'share'),
      figure('  at least', Math.min(...used), 'share', atLeast(0.5)),
      ...shares.figures(Object.fromEntries(goals)),
    ],
    violations: [],
  };
}
