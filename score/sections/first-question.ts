import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type Clock, systemClock } from '../../src/base/clock.ts';
import type { TroupeInput } from '../../src/library/config/agents-file.ts';
import { createTroupe } from '../../src/library/runtime/create-troupe.ts';
import type { Troupe } from '../../src/library/troupe.ts';
import { below, pick, type Random, randomOf } from '../../sim/random.ts';
import { atLeast, atMost, figure, median, type Scored, Shares } from '../figure.ts';
import type { Options } from '../options.ts';

/**
 * The first question of a process, about something that was said before what the window still holds: is the answer in the prompt?
 * Conversations are made from a seed and written by one process; another one is asked.
 */
const ANA = { kind: 'user', id: 'ana', name: 'Ana' } as const;
const ROOM = 'room';
const WINDOW = 8_000;
/** Characters of a window that the last messages alone would have. */
const LAST = WINDOW * 3;
const SYLLABLES = ['ka', 'lo', 'mir', 'ten', 'vu', 'sha', 'pol', 'dri', 'qua', 'nes', 'bo', 'zel'];
const PLACES = ['harbour', 'library', 'greenhouse', 'workshop', 'archive', 'bakery', 'observatory'];
const TALK = [
  'The P was full of people again, and most of them came by boat.',
  'I walked past the P this morning and the lights were still on.',
  'It rained the whole day here, so the P stayed empty.',
  'My brother says that the P has a new roof, and that it looks well.',
];
/** `N` is a name, `V` what is asked for. */
const FACTS = [
  ['The door of N opens with the word V.', 'What is the word for the door of N?'],
  ['I met N at the ferry, and the boat was called V.', 'What was the boat called when I met N?'],
  ['N keeps the spare key under V.', 'Where is the spare key of N?'],
  ['For N we bought the lamp from V, which was cheaper.', 'From whom did we buy the lamp for N?'],
] as const;
/** Words before and behind a fact in the middle of a long message: some 11,000 tokens in all. */
const LONG = 4_000;

type Kind = 'short' | 'long';

interface Asked {
  kind: Kind;
  question: string;
  answer: string;
}

interface Written {
  /** What people say, in order; an agent answers every eighth. */
  said: string[];
  asked: Asked[];
}

function wordOf(random: Random): string {
  return Array.from({ length: 5 }, () => pick(random, SYLLABLES)).join('');
}

function nameOf(random: Random): string {
  const word = wordOf(random);
  return word.charAt(0).toUpperCase() + word.slice(1);
}

function talkOf(random: Random): string {
  return `${pick(random, TALK).replace(/\bP\b/, pick(random, PLACES))} ${wordOf(random)} ${wordOf(random)}.`;
}

function longOf(random: Random): string {
  let words = 0;
  const lines: string[] = [];
  while (words < LONG) {
    const line = talkOf(random);
    words += line.split(' ').length;
    lines.push(line);
  }
  return lines.join(' ');
}

function write(random: Random): Written {
  const written: Written = { said: [], asked: [] };
  const fill = (count: number) => {
    for (let n = 0; n < count; n += 1) written.said.push(talkOf(random));
  };
  for (const kind of ['short', 'short', 'long', 'short'] as const) {
    fill(20 + below(random, 30));
    const [fact, question] = pick(random, FACTS);
    const [name, answer] = [nameOf(random), wordOf(random)];
    const told = fact.replace(/\bV\b/, answer).replace(/\bN\b/, name);
    written.said.push(kind === 'short' ? told : `${longOf(random)} ${told} ${longOf(random)}`);
    written.asked.push({ kind, question: question.replace(/\bN\b/, name), answer });
  }
  fill(350 + below(random, 250));
  return written;
}

function companyOf(retrieval: boolean): TroupeInput {
  const script = { rules: [{ reply: 'It is well so.' }] };
  return {
    agents: [{ id: 'desk', provider: 'scripted', contextWindow: WINDOW, maxOutputTokens: 1_000, script }],
    context: { summaries: 'extract', retrieval },
  };
}

/** Limits are a hundred times as long: what is found must not depend on the machine. `cold` has the times. */
const PATIENT: Clock = {
  ...systemClock,
  sleep: (ms, signal, purpose) => systemClock.sleep(purpose === undefined ? ms * 100 : ms, signal, purpose),
};

function open(data: string, retrieval = true): Promise<Troupe> {
  return createTroupe(companyOf(retrieval), { data, clock: PATIENT, onWarning: () => {} });
}

/** The prompt of the first turn of a process on a copy of the data. */
async function firstPrompt(data: string, content: string, retrieval = true) {
  const copy = `${data}-copy`;
  cpSync(data, copy, { recursive: true });
  try {
    await using troupe = await open(copy, retrieval);
    const { event } = await troupe.send(ROOM, { author: ANA, to: ['desk'], content });
    await troupe.idle();
    const { events } = await troupe.events(ROOM, { after: event.seq });
    const started = events.find(({ kind }) => kind === 'turn.started');
    const { messages } = await troupe.promptOf(started?.turn ?? '');
    const text = messages.map((message) => message.content).join('\n');
    return { text, memories: started?.context?.memories?.length ?? 0 };
  } finally {
    rmSync(copy, { recursive: true });
  }
}

/** Writes a conversation. Returns its events. */
async function writeTo(data: string, said: readonly string[]): Promise<number> {
  await using troupe = await open(data);
  for (const [at, content] of said.entries()) {
    const isAsked = at % 8 === 7;
    await troupe.send(ROOM, { author: ANA, to: isAsked ? ['desk'] : [], content });
    if (isAsked) await troupe.idle();
  }
  return (await troupe.events(ROOM, { limit: 1 })).head;
}

export async function scoreFirstQuestion({ seed, quick }: Options): Promise<Scored> {
  const random = randomOf(seed, 'first question');
  const shares = new Shares();
  const lengths: number[] = [];
  for (let round = 0; round < (quick ? 2 : 5); round += 1) {
    const dir = mkdtempSync(path.join(tmpdir(), 'troupe-question-'));
    try {
      const data = path.join(dir, 'data');
      const { said, asked } = write(random);
      lengths.push(await writeTo(data, said));
      for (const { kind, question, answer } of asked) {
        const where = kind === 'long' ? 'in the middle of 11,000 tokens' : 'in a message';
        const add = (way: string, text: string) =>
          shares.add(`${way}: what was said ${where}`, text.includes(answer));
        add('troupe', (await firstPrompt(data, question)).text);
        add('its compaction alone', (await firstPrompt(data, question, false)).text);
        const all = said.join('\n');
        add('last messages', all.slice(-LAST));
        add("a model's summary and the last messages", `They talked of places.\n${all.slice(-LAST)}`);
        add('no compaction', all.length / 4 > WINDOW ? '' : all);
      }
      for (let n = 0; n < 3; n += 1) {
        const { memories } = await firstPrompt(data, talkOf(random));
        shares.add('troupe: talk that asks nothing gets memories', memories > 0);
      }
    } finally {
      rmSync(dir, { recursive: true });
    }
  }
  const goals = {
    'troupe: what was said in a message': atLeast(0.9),
    'troupe: what was said in the middle of 11,000 tokens': atLeast(0.9),
    'troupe: talk that asks nothing gets memories': atMost(0.1),
  };
  return {
    figures: [figure('events of a conversation, median', median(lengths), 'count'), ...shares.figures(goals)],
    violations: [],
  };
}
