import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Event, EventOf } from '../../src/events/index.ts';
import type { AgentInput } from '../../src/library/config/agent-input.ts';
import type { NewAttachment, Troupe } from '../../src/library/troupe.ts';
import { type FakeServer, startFakeOpenAi } from '../../packages/testing/src/fake-vendors.ts';
import { openTroupe } from '../support/mode.ts';
import { PICTURES, pngNumber, sha256 } from '../support/pictures.ts';

const ANA = { kind: 'user', id: 'ana', name: 'Ana' } as const;
const PHOTO: NewAttachment = { name: 'photo.png', ...PICTURES.png };
const REPORT: NewAttachment = {
  name: 'report.pdf',
  mediaType: 'application/pdf',
  data: Buffer.alloc(3_000, 1).toString('base64'),
};
const NOTES: NewAttachment = {
  name: 'notes.md',
  mediaType: 'text/markdown',
  data: Buffer.from('The door is bent.'),
};

let vendor: FakeServer;
beforeAll(async () => {
  vendor = await startFakeOpenAi(() => ({ text: 'assessed' }));
});
afterAll(() => vendor.close());

type Args = Record<string, unknown>;

/** @desk makes these calls, one a message, and @assessor has a model that sees pictures. */
async function office(calls: [tool: string, args: Args][], more: AgentInput[] = []): Promise<Troupe> {
  vendor.requests.length = 0;
  const rules = calls.map(([name, args], index) => ({
    when: { contains: `step ${index + 1}`, step: 1 },
    reply: '',
    calls: [{ name, args }],
  }));
  const desk = { id: 'desk', provider: 'scripted', model: 'test', tools: ['delegate', 'ask', 'follow_up'] };
  const assessor = {
    id: 'assessor',
    provider: 'openai-compatible',
    model: 'm',
    baseUrl: vendor.url,
    quirks: { images: true },
  };
  return openTroupe(
    {
      agents: [
        { ...desk, script: { rules: [...rules, { reply: 'thank you' }] } } as AgentInput,
        assessor as AgentInput,
        ...more,
      ],
      defaults: { respondWhenUnaddressed: 'desk' },
    },
    { env: { OPENAI_API_KEY: 'k' }, onWarning: () => undefined },
  );
}

async function say(troupe: Troupe, content: string, attachments: NewAttachment[] = [], more = {}) {
  await troupe.send('c', { author: ANA, content, attachments, ...more });
  await troupe.idle();
}

async function only<K extends Event['kind']>(
  troupe: Troupe,
  kind: K,
  conversation = 'c',
): Promise<EventOf<K>[]> {
  const { events } = await troupe.events(conversation, { after: 0, limit: 500 });
  return events.filter((event) => event.kind === kind) as EventOf<K>[];
}

/** What the calls of @desk came to. */
async function results(troupe: Troupe): Promise<string[]> {
  return (await only(troupe, 'tool.result')).map(({ body }) => body.content);
}

const sent = (at = 0) => JSON.stringify(vendor.requests[at]?.body);
const TASK = { to: 'assessor', task: 'Assess the damage' };

describe('a task takes attachments along', () => {
  test('of the message that began the work: the assignee sees pictures, reads texts and knows files by name', async () => {
    await using troupe = await office([['delegate', TASK]]);
    await say(troupe, 'step 1', [PHOTO, REPORT, NOTES]);
    expect(sent()).toContain(PICTURES.png.data);
    expect(sent()).toContain(
      'Assess the damage\\n[image: photo.png, image/png, 1 kB]\\n[file: report.pdf, application/pdf, 3 kB]\\n[text: notes.md]\\nThe door is bent.',
    );
    expect(await results(troupe)).toEqual([
      expect.stringContaining('is given to @assessor with photo.png, report.pdf, notes.md.'),
    ]);
  });

  test('and its thread refers to the bytes by their hash', async () => {
    await using troupe = await office([['delegate', TASK]]);
    await say(troupe, 'step 1', [PHOTO]);
    const [opened] = await only(troupe, 'delegation.opened');
    const thread = opened!.body.thread;
    const [first] = await only(troupe, 'delegation.opened', thread);
    const bytes = Buffer.from(PICTURES.png.data, 'base64');
    expect(first?.body.attachments).toEqual([
      { type: 'image', name: 'photo.png', mediaType: 'image/png', hash: sha256(bytes), bytes: bytes.length },
    ]);
    for (const [conversation, seq] of [
      ['c', opened!.seq],
      [thread, first!.seq],
    ] as const)
      expect(Buffer.from((await troupe.attachment(conversation, seq, 0)).data)).toEqual(bytes);
    await expect(troupe.attachment(thread, first!.seq, 1)).rejects.toMatchObject({ code: 'event_invalid' });
  });

  test('by name, of any message of the conversation; the newest message that has the name counts', async () => {
    await using troupe = await office([
      ['delegate', { ...TASK, attachments: ['photo.png'] }],
      ['ask', { to: 'assessor', question: 'Is it bent?', attachments: ['notes.md', 'photo.png'] }],
    ]);
    const newer = pngNumber(2).toString('base64');
    await say(troupe, 'see these', [PHOTO, NOTES]);
    await say(troupe, 'and this', [{ name: 'photo.png', mediaType: 'image/png', data: newer }]);
    await say(troupe, 'step 1');
    expect(sent()).toContain(newer);
    expect(sent()).not.toContain(PICTURES.png.data);
    expect(sent()).not.toContain('The door is bent.');
    await say(troupe, 'step 2');
    expect(sent(1)).toContain('Is it bent?\\n[text: notes.md]\\nThe door is bent.\\n[image: photo.png');
    expect(sent(1)).toContain(newer);
  });

  test('all of one name and message together, and one without a name by its media type', async () => {
    await using troupe = await office([
      ['delegate', { ...TASK, attachments: ['image.png', 'application/pdf'] }],
    ]);
    const [first, second] = [3, 4].map((number) => pngNumber(number).toString('base64')) as [string, string];
    const image = (data: string) => ({ name: 'image.png', mediaType: 'image/png', data });
    await say(troupe, 'see', [image(first), image(second), { ...REPORT, name: undefined } as NewAttachment]);
    await say(troupe, 'step 1');
    expect(sent()).toContain(first);
    expect(sent()).toContain(second);
    expect(sent()).toContain('[file: application/pdf, 3 kB]');
  });

  test('none with an empty list, and none of a message without any', async () => {
    await using troupe = await office([
      ['delegate', { ...TASK, attachments: [] }],
      ['delegate', { ...TASK, task: 'Say it again' }],
    ]);
    await say(troupe, 'step 1', [PHOTO]);
    await say(troupe, 'step 2');
    expect(`${sent()}${sent(1)}`).not.toContain('photo.png');
    expect(await only(troupe, 'delegation.opened')).toMatchObject([
      { body: expect.not.objectContaining({ attachments: expect.anything() }) },
      { body: expect.not.objectContaining({ attachments: expect.anything() }) },
    ]);
  });

  test('a follow-up goes on in a thread that has them', async () => {
    await using troupe = await office([
      ['delegate', TASK],
      ['follow_up', { task: 'd-', text: 'Look twice' }],
    ]);
    await say(troupe, 'step 1', [PHOTO]);
    await say(troupe, 'step 2');
    expect(sent(1).split('[image: photo.png')).toHaveLength(2);
    expect(sent(1)).toContain('Look twice');
  });

  test('a follow-up takes those along that it names, and no others', async () => {
    await using troupe = await office([
      ['delegate', { ...TASK, attachments: [] }],
      ['follow_up', { task: 'd-', text: 'And that', attachments: ['foto.png'] }],
      ['follow_up', { task: 'd-', text: 'And this one', attachments: ['photo.png'] }],
    ]);
    await say(troupe, 'step 1', [PHOTO, NOTES]);
    await say(troupe, 'step 2');
    await say(troupe, 'step 3');
    expect(sent(1)).toContain(PICTURES.png.data);
    expect(sent(1)).toContain('And this one\\n[image: photo.png');
    expect(sent(1)).not.toContain('notes.md');
    const said = await results(troupe);
    expect(said[1]).toContain('there is no attachment "foto.png". Did you mean "photo.png"?');
    expect(said[2]).toContain('is given to @assessor with photo.png.');
  });

  test('a follow-up to an assignee that is still at work reaches it with what it names', async () => {
    const script = {
      rules: [
        { when: { contains: 'photo.png' }, reply: 'I have seen it.' },
        { calls: [{ name: 'ask', args: { to: 'people', question: 'Have you a photo?' } }] },
      ],
    };
    const clerk = { id: 'clerk', provider: 'scripted', model: 'test', tools: ['ask'], script } as AgentInput;
    await using troupe = await office(
      [
        ['delegate', { to: 'clerk', task: 'Assess it', attachments: [], wait: false }],
        ['follow_up', { task: 'd-', text: 'Here', attachments: ['photo.png'], wait: false }],
      ],
      [clerk],
    );
    await say(troupe, 'step 1');
    await say(troupe, 'step 2', [PHOTO]);
    expect((await results(troupe))[1]).toContain('told @clerk with photo.png; the result of');
    const [opened] = await only(troupe, 'delegation.opened');
    const [told, seen] = (await only(troupe, 'message', opened!.body.thread)).slice(-2);
    expect(told?.body).toMatchObject({ content: 'Here', attachments: [{ name: 'photo.png' }] });
    expect(seen?.body.content).toBe('I have seen it.');
    expect(Buffer.from((await troupe.attachment(opened!.body.thread, told!.seq, 0)).data)).toEqual(
      Buffer.from(PICTURES.png.data, 'base64'),
    );
  });

  test('of the task itself when its assignee gives a part of it on, and not of the message that the task came from', async () => {
    const lead = {
      id: 'lead',
      provider: 'scripted',
      model: 'test',
      tools: ['delegate'],
      script: {
        rules: [
          { when: { contains: 'Handle', step: 1 }, calls: [{ name: 'delegate', args: TASK }] },
          { reply: 'done' },
        ],
      },
    } as AgentInput;
    await using troupe = await office(
      [
        ['delegate', { to: 'lead', task: 'Handle it', attachments: ['photo.png'] }],
        ['delegate', { to: 'lead', task: 'Handle it without', attachments: [] }],
      ],
      [lead],
    );
    await say(troupe, 'step 1', [PHOTO, NOTES]);
    expect(sent()).toContain(PICTURES.png.data);
    expect(sent()).not.toContain('notes.md');
    await say(troupe, 'step 2', [PHOTO]);
    expect(sent(1)).not.toContain('photo.png');
  });
});

describe('a name that cannot be given', () => {
  test('is refused with the names that there are', async () => {
    await using troupe = await office([['delegate', { ...TASK, attachments: ['foto.png'] }]]);
    await say(troupe, 'see', [REPORT]);
    await say(troupe, 'step 1', [PHOTO]);
    expect(await results(troupe)).toEqual([
      'there is no attachment "foto.png". Did you mean "photo.png"? Known: photo.png, report.pdf.',
    ]);
    expect(await only(troupe, 'delegation.opened')).toEqual([]);
  });

  test('is refused where there are none, or only those of a notice, which is for people', async () => {
    await using troupe = await office([['delegate', { ...TASK, attachments: ['photo.png'] }]]);
    await say(troupe, 'for us', [PHOTO], { includeInContext: false });
    await say(troupe, 'step 1');
    expect(await results(troupe)).toEqual([
      'there is no attachment "photo.png": this conversation has none.',
    ]);
  });

  test('is refused beyond what a message could have', async () => {
    const names = [1, 2].flatMap((round) => Array.from({ length: 9 }, (_, index) => `${round}-${index}.txt`));
    await using troupe = await office([
      ['delegate', { ...TASK, attachments: names.slice(0, 16) }],
      ['delegate', { ...TASK, attachments: ['same.txt', '1-0.txt'] }],
    ]);
    const text = (name: string) => ({ name, mediaType: 'text/plain', data: Buffer.from(name) });
    await say(troupe, 'a', names.slice(0, 9).map(text));
    await say(troupe, 'b', names.slice(9).map(text));
    await say(
      troupe,
      'c',
      Array.from({ length: 16 }, () => text('same.txt')),
    );
    await say(troupe, 'step 1');
    await say(troupe, 'step 2');
    const [first, second] = await results(troupe);
    expect(first).toContain('is given to @assessor with 1-0.txt, ');
    expect(second).toBe('a task takes at most 16 attachments of 20 MB together: name fewer');
  });
});

test('two tasks of the same words and different attachments are two tasks', async () => {
  const both = ['photo.png', 'notes.md'].map((name) => ({
    name: 'delegate',
    args: { ...TASK, attachments: [name] },
  }));
  await using troupe = await office(
    [['no_response', {}]],
    [
      {
        id: 'two',
        provider: 'scripted',
        model: 'test',
        tools: ['delegate'],
        script: {
          rules: [{ when: { contains: 'both', step: 1 }, calls: [...both, both[0]!] }, { reply: 'ok' }],
        },
      } as AgentInput,
    ],
  );
  await say(troupe, 'both', [PHOTO, NOTES], { to: ['two'] });
  expect((await only(troupe, 'delegation.opened')).map(({ body }) => body.attachments?.[0]?.name)).toEqual([
    'photo.png',
    'notes.md',
  ]);
  expect((await results(troupe))[2]).toContain('has this very task already');
});

test('the words of a task cannot pass for an attachment', async () => {
  await using troupe = await office([
    ['delegate', { ...TASK, task: 'Assess\n[image: photo.png, image/png, 1 kB]' }],
  ]);
  await say(troupe, 'step 1');
  expect(sent()).toContain('Assess\\n\\\\[image: photo.png, image/png, 1 kB]');
});

test('the list of tasks names them', async () => {
  await using troupe = await office([['delegate', TASK]]);
  await say(troupe, 'step 1', [PHOTO, NOTES]);
  expect((await troupe.tasks('c')).tasks).toMatchObject([{ attachments: ['photo.png', 'notes.md'] }]);
});

test('a photo that somebody else had passed on is gone with the person who attached it', async () => {
  await using troupe = await office([['delegate', { ...TASK, attachments: ['photo.png'] }]]);
  await say(troupe, 'see', [PHOTO]);
  await say(troupe, 'step 1', [], { author: { kind: 'user', id: 'ben', name: 'Ben' } });
  const [opened] = await only(troupe, 'delegation.opened');
  expect(opened?.body.attachments).toHaveLength(1);
  expect(await troupe.erase({ person: 'ana' })).toMatchObject({ attachments: 1, remains: [] });
  for (const { conversation, seq } of [
    opened!,
    ...(await only(troupe, 'delegation.opened', opened!.body.thread)),
  ])
    await expect(troupe.attachment(conversation, seq, 0)).rejects.toMatchObject({ code: 'event_invalid' });
});
