import { afterAll, describe, expect, test } from 'vitest';
import * as z from 'zod';
import { createTroupe, openTroupe } from '../../src/library/runtime/create-troupe.ts';
import type { Troupe } from '../../src/library/troupe.ts';
import { defineTool } from '../../src/tools/tool.ts';
import { createTestClock } from '../../packages/testing/src/index.ts';
import { treeToDelete } from '../../src/actors/conversations/delete-conversation.ts';
import { eraseConversations } from '../../src/actors/erasure/erase-conversations.ts';
import { type ConversationId, DEFAULT_TENANT } from '../../src/events/index.ts';
import type { ConversationKey } from '../../src/store/store.ts';
import { byStep, says } from '../support/engine-models.ts';
import { openStage } from '../support/engine-stage.ts';
import { randomOf } from '../../sim/random.ts';
import { directory, STORAGES } from '../support/storages.ts';

const SEED = Math.floor(Math.random() * 2 ** 31);
const random = randomOf(SEED, 'planted');
/** Like names and numbers of claims. */
const WORDS = Array.from({ length: 300 }, (_, index) => {
  const letters = Array.from({ length: 7 }, () => 'bcdfgklmnprstvz'[Math.floor(random() * 15)]).join('');
  return index % 3 === 0 ? `${letters}-${index + 40_000}` : `${letters}${'aeiou'[index % 5]}`;
});
const OF_PERSON = WORDS.slice(0, 150);
const OF_CONVERSATION = WORDS.slice(150, 225);
const OF_TENANT = WORDS.slice(225);

const ANA = { kind: 'user' as const, id: 'ana', name: 'Ana' };
const BEN = { kind: 'user' as const, id: 'ben', name: 'Ben' };

const lookUp = defineTool({
  name: 'look_up',
  description: 'Looks up what was said.',
  schema: z.object({ about: z.string() }),
  run: ({ about }) => Promise.resolve(`found ${about} ${'and so on '.repeat(1_500)}`),
});

/** Everything that came in comes back: in arguments, results, a task and the reply. */
const echo = (text: string) => [
  { when: { step: 1 }, reply: `I look at ${text}`, calls: [{ name: 'look_up', args: { about: text } }] },
  { when: { step: 2 }, reply: 'I ask.', calls: [{ name: 'delegate', args: { to: 'clerk', task: text } }] },
  { reply: `Dear ${text}, it is on its way.` },
];

const DEFINITION = {
  agents: [
    {
      id: 'desk',
      provider: 'scripted' as const,
      tools: ['look_up', 'delegate'],
      script: {
        rules: [
          { when: { contains: 'weather' }, reply: 'It is sunny.' },
          { when: { contains: 'Noted' }, reply: 'So {{trigger}}' },
          ...echo('{{trigger}}'),
        ],
      },
    },
    { id: 'clerk', provider: 'scripted' as const, script: { rules: [{ reply: 'Noted: {{trigger}}' }] } },
  ],
  tools: [lookUp],
};

async function say(troupe: Troupe, conversation: string, author: typeof ANA, words: readonly string[]) {
  const file = { name: `${words[0]}.txt`, mediaType: 'text/plain', data: Buffer.from(words.join('\n')) };
  const scan = { name: `${words[1]}.bin`, mediaType: 'application/octet-stream', data: file.data };
  await troupe.ask(conversation, {
    author,
    to: ['desk'],
    content: `This is about ${words.join(', ')}.`,
    attachments: [file, scan],
  });
}

/** In any case, in Base64 too, as attachments are stored. */
function foundIn(text: string, words: readonly string[]): string[] {
  const lower = text.toLowerCase();
  return words.filter((word) => lower.includes(word.toLowerCase()) || text.includes(base64Core(word)));
}

function base64Core(word: string): string {
  return Buffer.from(word).toString('base64').replace(/=+$/, '').slice(0, -1);
}

describe.each(STORAGES)('words planted in %s', (title, missing, open) => {
  const closing: (() => Promise<void>)[] = [];
  afterAll(async () => {
    for (const close of closing) await close();
  });

  test.skipIf(missing !== null)(
    `are nowhere after they were erased, and logs and prompts verify${missing === null ? '' : ` (skipped: ${missing})`}`,
    async () => {
      const stage = await open();
      closing.push(() => stage.close());
      await using other = stage.isShared ? await createTroupe(DEFINITION, stage.options) : null;
      // Where there are two processes, the other one has taken the turns and remembers them.
      await using troupe = await createTroupe(DEFINITION, {
        ...stage.options,
        ...(other && { work: false }),
      });
      for (let from = 0; from < OF_PERSON.length; from += 30)
        await say(troupe, `c${from % 60}`, ANA, OF_PERSON.slice(from, from + 30));
      await troupe.ask('c0', { author: BEN, to: ['desk'], content: `The weather, ${OF_PERSON[3]}?` });
      await troupe.people.set('ana', { preferences: `calls herself ${OF_PERSON[7]}` });
      await say(troupe, 'whole', BEN, OF_CONVERSATION);
      const acme = troupe.forTenant('acme');
      await say(acme, 'a', BEN, OF_TENANT);
      await troupe.idle();
      await other?.prompt('c0', 'desk');
      expect(foundIn(await stage.text(), WORDS).length, `${title}, seed ${SEED}`).toBe(WORDS.length);

      await expect(troupe.erase({ tenant: 'acme' })).rejects.toThrow('is not this tenant');
      const receipts = [
        await troupe.erase({ person: 'ana' }),
        await troupe.erase({ conversation: 'whole' }),
        await acme.erase({ tenant: 'acme' }),
      ];
      expect(foundIn(JSON.stringify(receipts), WORDS)).toEqual([]);
      expect(receipts.map(({ attachments }) => attachments > 0)).toEqual([true, true, true]);
      expect(foundIn(await stage.text(), WORDS), `${title}, seed ${SEED}`).toEqual([]);

      const exported: string[] = [];
      for (const conversation of ['c0', 'c30']) {
        for await (const line of troupe.export(conversation)) exported.push(line);
        const { problems, erased } = await troupe.verify(conversation);
        expect(problems).toEqual([]);
        expect(erased).toBeGreaterThan(5);
        const { events } = await troupe.events(conversation, { limit: 500 });
        for (const { kind, turn } of events) {
          if (kind !== 'turn.started' || turn === undefined) continue;
          const prompt = await troupe.promptOf(turn, 1);
          expect([turn, prompt.verified || prompt.erased]).toEqual([turn, true]);
          exported.push(JSON.stringify(prompt.messages));
        }
      }
      for (const each of other ? [troupe, other] : [troupe])
        exported.push(JSON.stringify(await each.prompt('c0', 'desk')));
      expect(foundIn(exported.join('\n'), WORDS)).toEqual([]);
      await expect(troupe.events('whole', { limit: 1 })).rejects.toMatchObject({
        code: 'conversation_unknown',
      });
      expect(await acme.conversations()).toEqual([]);
    },
  );
});

test('a file that another conversation has stays when its conversation is erased', async () => {
  await using troupe = await createTroupe(DEFINITION, { data: ':memory:' });
  const file = { name: 'map.bin', mediaType: 'application/octet-stream', data: Buffer.from('a shared map') };
  for (const conversation of ['one', 'two'])
    await troupe.ask(conversation, { author: BEN, to: ['desk'], content: 'weather', attachments: [file] });
  await troupe.erase({ conversation: 'one' });
  const { data } = await troupe.attachment('two', 1, 0);
  expect(Buffer.from(data).toString()).toBe('a shared map');
});

test.each([
  ['its conversation', { conversation: 'one' }],
  ['the tenant', { tenant: 'default' }],
])(
  'after %s was erased, what the agents are told is stored for the conversations that follow',
  async (_, target) => {
    const folder = await directory();
    const company = (instructions: string) => ({
      agents: [
        { id: 'desk', provider: 'scripted' as const, instructions, script: { rules: [{ reply: 'Sunny.' }] } },
        {
          id: 'clerk',
          provider: 'scripted' as const,
          instructions: () => `${instructions} Today is a holiday.`,
          script: { rules: [{ reply: 'Closed.' }] },
        },
      ],
    });
    const to = ['desk', 'clerk'];
    {
      await using troupe = await createTroupe(company('Be brief.'), folder.options);
      await troupe.ask('one', { author: BEN, to, content: 'weather' });
      await troupe.erase(target);
      await troupe.ask('two', { author: BEN, to, content: 'weather' });
      await troupe.idle();
    }
    await using troupe = await createTroupe(company('Be verbose.'), folder.options);
    for (const agent of to)
      expect(await troupe.promptOf(`two:${agent}:1`, 1)).toMatchObject({
        verified: true,
        messages: expect.arrayContaining([
          expect.objectContaining({ content: expect.stringContaining('Be brief.') }),
        ]),
      });
    await folder.close();
  },
);

test('a conversation in which somebody speaks while the tenant is read keeps its words and files', async () => {
  const stage = await openStage({ agents: [{ id: 'bo', model: byStep(says('Yes.')) }] });
  const { store } = stage;
  const hash = 'a'.repeat(64);
  await store.putBody(DEFAULT_TENANT, hash, 'a file', 1);
  await stage.say('one', `a file ${hash}`, ['bo']);
  await stage.quiet();
  let looks = 0;
  const treeOf = async (root: ConversationKey) =>
    (looks += 1) === 1 ? treeToDelete(stage.deps, root) : null;
  const erasing = { ...stage.deps, treeOf, spared: new Set<string>(), forget: () => undefined };
  const erased = await eraseConversations(erasing, DEFAULT_TENANT, ['one' as ConversationId]);
  expect(erased).toMatchObject({ conversations: 0, events: 0, attachments: 0 });
  expect(await store.readBody(DEFAULT_TENANT, hash)).toBe('a file');
  const again = { ...erasing, treeOf: (root: ConversationKey) => treeToDelete(stage.deps, root) };
  await eraseConversations(again, DEFAULT_TENANT, ['one' as ConversationId]);
  expect(await store.readBody(DEFAULT_TENANT, hash)).toBeNull();
});

describe('retention', () => {
  const DAY = 86_400_000;

  test('conversations that were quiet for the days of their tenant are gone with their files, threads with their root', async () => {
    const clock = createTestClock();
    const folder = await directory();
    const retention = { days: 3, tenants: { acme: 1 } };
    const options = { ...folder.options, clock };
    await using troupe = await openTroupe({ ...DEFINITION, retention }, options);
    const acme = troupe.forTenant('acme');
    await say(troupe, 'old', ANA, OF_CONVERSATION);
    await say(acme, 'short', ANA, OF_TENANT);
    await clock.pass(2 * DAY);
    await troupe.ask('young', { author: BEN, to: ['desk'], content: 'The weather?' });
    await troupe.idle();
    expect(await acme.conversations()).toEqual([]);
    expect(foundIn(await folder.text(), OF_CONVERSATION)).toEqual(OF_CONVERSATION);
    await clock.pass(2 * DAY);
    await troupe.idle();
    expect((await troupe.conversations()).map(({ id }) => id)).toEqual(['young']);
    expect(foundIn(await folder.text(), WORDS)).toEqual([]);
    await folder.close();
  });

  test('days that are none are refused', async () => {
    for (const retention of [{ days: 0 }, {}, { days: 1, tenants: { acme: -1 } }])
      await expect(
        createTroupe({ ...DEFINITION, retention: retention as { days: number } }),
      ).rejects.toMatchObject({
        code: 'config_invalid',
      });
  });
});
