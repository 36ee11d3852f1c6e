import { readFileSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { defineTool } from '../../src/tools/tool.ts';
import { openTroupe } from '../../src/library/runtime/create-troupe.ts';
import type { Troupe } from '../../src/library/troupe.ts';
import { createPersonsWords } from '../../src/actors/erasure/erased-words.ts';
import { emptied } from '../../src/actors/erasure/hole.ts';
import { EVENT_KINDS, type Event, EventDraft, type EventId, eventSchema } from '../../src/events/index.ts';
import { shapesOf } from '../../fuzz/targets/events.ts';
import { sampleOf } from '../../fuzz/sample-of.ts';
import { randomOf } from '../../sim/random.ts';
import * as z from 'zod';

const ANA = { kind: 'user' as const, id: 'ana', name: 'Ana Zwiebelkuchen' };
const BEN = { kind: 'user' as const, id: 'ben', name: 'Ben' };

/** Words that nobody else says by chance, as names, numbers and places are. */
const PLANTED = ['Quorvinal', 'zx-40417', 'Blemquist', 'Harrowgate77', 'ulmforscher', 'Zwiebelkuchen'];

const lookUp = defineTool({
  name: 'look_up',
  description: 'Looks up a claim.',
  schema: z.object({ claim: z.string(), count: z.number().optional() }),
  run: ({ claim }) =>
    Promise.resolve(`claim ${claim} of Quorvinal in Harrowgate77 ${'and so on '.repeat(2_000)}`),
});

const folders: string[] = [];
afterEach(async () => {
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true, force: true });
});

async function newFolder(): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), 'troupe-erasure-'));
  folders.push(folder);
  return folder;
}

const AGENTS = [
  {
    id: 'desk',
    provider: 'scripted' as const,
    tools: ['look_up', 'delegate'],
    script: {
      rules: [
        { when: { contains: 'weather' }, reply: 'It is sunny in Lisbon.' },
        {
          when: { step: 1, contains: 'claim zx' },
          reply: 'I look at zx-40417.',
          calls: [{ name: 'look_up', args: { claim: 'zx-40417' } }],
        },
        {
          when: { step: 2, contains: 'claim zx' },
          reply: 'I ask the assessor.',
          calls: [
            { name: 'delegate', args: { to: 'assessor', task: 'Assess zx-40417 of Quorvinal, ulmforscher' } },
          ],
        },
        { reply: 'Dear Quorvinal, your claim is on its way to Blemquist.' },
      ],
    },
  },
  {
    id: 'assessor',
    provider: 'scripted' as const,
    script: { rules: [{ reply: 'Quorvinal of Harrowgate77 is owed 40 for Blemquist.' }] },
  },
];

async function play(data: string): Promise<Troupe> {
  const troupe = await openTroupe({ agents: AGENTS, tools: [lookUp] }, { data });
  await troupe.ask('c', {
    author: ANA,
    to: ['desk'],
    content: 'I am Quorvinal, claim zx-40417: Blemquist broke in Harrowgate77. My work: ulmforscher.',
    attachments: [
      {
        name: 'Quorvinal.bin',
        mediaType: 'application/octet-stream',
        data: Buffer.from('photo of Blemquist'),
      },
    ],
  });
  await troupe.ask('c', { author: BEN, to: ['desk'], content: 'And the weather? Quorvinal asked, too.' });
  await troupe.idle();
  return troupe;
}

async function foundIn(folder: string, words: readonly string[]): Promise<string[]> {
  const found: string[] = [];
  for (const file of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (!file.isFile()) continue;
    const text = (await readFile(path.join(file.parentPath, file.name))).toString('latin1').toLowerCase();
    for (const word of words) if (text.includes(word.toLowerCase())) found.push(`${word} in ${file.name}`);
  }
  return found;
}

test('no file of the data directory has a word of a person who was erased, and the log still verifies', async () => {
  const data = await newFolder();
  await using troupe = await play(data);
  expect(await foundIn(data, PLANTED)).not.toEqual([]);
  const receipt = await troupe.erase({ person: 'ana' });
  expect(receipt).toMatchObject({ person: 'ana', attachments: 1, remains: [] });
  expect(await foundIn(data, PLANTED)).toEqual([]);
  const photo = Buffer.from('photo of Blemquist').toString('base64');
  expect(await foundIn(data, [photo])).toEqual([]);
  const { problems, erased } = await troupe.verify('c');
  expect(problems).toEqual([]);
  expect(erased).toBeGreaterThan(10);
  const page = await troupe.events('c', { limit: 100 });
  const texts = page.events.flatMap((event) =>
    event.kind === 'message' ? [`${event.author.id}: ${event.body.content}`] : [],
  );
  expect(texts).toContain('ana: [erased]');
  expect(texts).toContain('ben: And the weather? [erased] asked, too.');
  expect(texts).toContain('desk: It is sunny in Lisbon.');
});

test('prompts say that words are erased, and no later prompt has them', async () => {
  const data = await newFolder();
  await using troupe = await play(data);
  expect(await troupe.promptOf('c:desk:1', 1)).toMatchObject({ verified: true });
  await troupe.prompt('c', 'desk');
  await troupe.erase({ person: 'ana' });
  const sent = await troupe.promptOf('c:desk:1', 1);
  expect(sent).toMatchObject({ verified: false, erased: true });
  const answer = await troupe.ask('c', { author: BEN, to: ['desk'], content: 'The weather again?' });
  const page = await troupe.events('c', { limit: 100 });
  const turns = page.events.flatMap(({ kind, turn }) => (kind === 'turn.started' && turn ? [turn] : []));
  const next = await troupe.promptOf(turns.at(-1)!);
  expect(next).toMatchObject({ verified: true });
  const shown = JSON.stringify([sent.messages, next.messages, await troupe.prompt('c', 'desk'), answer]);
  for (const word of PLANTED) expect(shown).not.toContain(word);
  expect(shown).toContain('[erased]');
});

test('a second erasure finds nothing more, and words said later are erased by another', async () => {
  await using troupe = await play(await newFolder());
  const first = await troupe.erase({ person: 'ana' });
  expect(first.events).toBeGreaterThan(5);
  expect(await troupe.erase({ person: 'ana' })).toMatchObject({
    events: 0,
    conversations: 0,
    attachments: 0,
  });
  await troupe.ask('c', { author: ANA, to: ['desk'], content: 'Quorvinal again, about the weather' });
  await troupe.erase({ person: 'ana' });
  const { problems } = await troupe.verify('c');
  expect(problems).toEqual([]);
  const page = await troupe.events('c', { limit: 200 });
  expect(JSON.stringify(page)).not.toContain('Quorvinal');
});

test('what others said before the person stays, and so do everyday words', async () => {
  await using troupe = await openTroupe({ agents: AGENTS, tools: [lookUp] }, { data: ':memory:' });
  await troupe.ask('c', { author: BEN, to: ['desk'], content: 'Blemquist is a town with weather.' });
  await troupe.ask('c', {
    author: ANA,
    to: ['desk'],
    content: 'The weather of Blemquist and Quorvinal is nice.',
  });
  await troupe.ask('d', { author: BEN, to: ['desk'], content: 'The weather is nice here, says Quorvinal.' });
  await troupe.erase({ person: 'ana' });
  const said = async (conversation: string) =>
    (await troupe.events(conversation, { limit: 100 })).events.flatMap((event) =>
      event.kind === 'message' && event.author.kind === 'user' ? [event.body.content] : [],
    );
  expect(await said('c')).toEqual(['Blemquist is a town with weather.', '[erased]']);
  expect(await said('d')).toEqual(['The weather is nice here, says Quorvinal.']);
});

test('a word is found in longer ones: with an ending, in an address, in a path', () => {
  const words = createPersonsWords((word) => ['said', 'write', 'here', 'claims'].includes(word));
  words.add('Quorvinal, zx-40417', 2);
  words.addName('Ana');
  expect(words.mask("Quorvinal's claims")).toBe('[erased] claims');
  for (const text of ['Quorvinal’s', 'claims/40417', 'quorvinal@example.org', 'Ana’s'])
    expect(words.mask(text)).toBe('[erased]');
  expect(words.mask('write here')).toBe('write here');
  words.exclude('Quorvinal-street', 1);
  expect(words.mask('Quorvinal said 40417')).toBe('Quorvinal said [erased]');
  expect(words.maskRuns('Quorvinal said 40417')).toBe('Quorvinal said [erased]');
});

test('no person, an empty one and an unknown field are refused', async () => {
  await using troupe = await openTroupe({ agents: AGENTS, tools: [lookUp] }, { data: ':memory:' });
  await expect(troupe.erase({ person: '' })).rejects.toMatchObject({ code: 'event_invalid' });
  await expect(troupe.erase({})).rejects.toThrow('give one of person, conversation and tenant');
  await expect(troupe.erase({ person: 'ana', conversation: 'c' })).rejects.toThrow('give one of');
  await expect(troupe.erase({ tenant: 'other' })).rejects.toThrow('"other" is not this tenant');
  await expect(troupe.erase({ person: 'ana', all: true } as { person: string })).rejects.toMatchObject({
    code: 'event_invalid',
  });
  expect(await troupe.erase({ person: 'nobody' })).toMatchObject({ events: 0, conversations: 0 });
});

const LOG = readFileSync(new URL('recorded-log.jsonl', import.meta.url), 'utf8')
  .split('\n')
  .filter((line) => line !== '')
  .map((line) => JSON.parse(line) as Event);

test('what is left of an event of any kind is an event, and has none of its texts', () => {
  const events = LOG.filter((event) => eventSchema(event.kind).safeParse(event).success);
  expect(new Set(events.map(({ kind }) => kind)).size).toBeGreaterThan(7);
  for (const event of events) {
    const left = emptied(event, 'erasure:x' as EventId, event.author.id) ?? event;
    expect([event.kind, eventSchema(event.kind).safeParse(left).error]).toEqual([event.kind, undefined]);
    if (event.kind === 'message') expect(JSON.stringify(left)).not.toContain(event.body.content);
  }
});

const SEED = Math.floor(Math.random() * 2 ** 31);

test('what is left of any event that can be written, of every kind, is an event', () => {
  const random = randomOf(SEED, 'holes');
  const kinds = new Set<string>();
  for (const shape of shapesOf(EventDraft))
    for (let time = 0; time < 100; time++) {
      const draft = EventDraft.safeParse(sampleOf(random, shape));
      if (!draft.success) continue;
      kinds.add(draft.data.kind);
      const event = { ...LOG[0], ...draft.data } as Event;
      const left = emptied(event, 'erasure:x' as EventId, event.author.id) ?? event;
      const { error } = eventSchema(event.kind).safeParse(left);
      expect(error?.issues, `${JSON.stringify(event)}, seed ${SEED}`).toBe(undefined);
    }
  expect(kinds).toEqual(new Set(EVENT_KINDS));
});
