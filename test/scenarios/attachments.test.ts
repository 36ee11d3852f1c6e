import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';
import type { AgentInput } from '../../src/library/config/agent-input.ts';
import type { EventId } from '../../src/events/index.ts';
import {
  startFakeAnthropic,
  startFakeOpenAi,
  startFakeOpenAiResponses,
  type FakeServer,
} from '../../packages/testing/src/fake-vendors.ts';
import type { NewAttachment, Troupe } from '../../src/library/troupe.ts';
import { chunksOf, company, ROOM, UMA, VIK } from '../support/company.ts';
import { openTroupe } from '../support/mode.ts';
import { PICTURES, pngNumber, sha256 } from '../support/pictures.ts';

const PNG = Buffer.from(PICTURES.png.data, 'base64');
const CHART: NewAttachment = { name: 'chart.png', mediaType: 'image/png', data: PNG };
const SEES = { agents: { a: { quirks: { images: true } } } } as const;
const ENV = { KEY: 'k' };

async function show(troupe: Troupe, attachments: NewAttachment[], content = 'What is it?', to = ['a']) {
  await troupe.send(ROOM, { author: UMA, to, content, attachments });
  await troupe.idle();
}

type Vendor = [
  name: string,
  start: () => Promise<FakeServer>,
  agent: Partial<AgentInput>,
  image: (mediaType: string, data: string) => object,
  text: string,
];
const dataUrl = (mediaType: string, data: string) => `data:${mediaType};base64,${data}`;
const VENDORS: Vendor[] = [
  [
    'anthropic',
    () => startFakeAnthropic(),
    { provider: 'anthropic' },
    (media_type, data) => ({ type: 'image', source: { type: 'base64', media_type, data } }),
    'text',
  ],
  [
    'openai',
    () => startFakeOpenAiResponses(),
    { provider: 'openai' },
    (...image) => ({ type: 'input_image', image_url: dataUrl(...image), detail: 'auto' }),
    'input_text',
  ],
  [
    'openai-compatible',
    () => startFakeOpenAi(),
    { provider: 'openai-compatible', quirks: { images: true } },
    (...image) => ({ type: 'image_url', image_url: { url: dataUrl(...image) } }),
    'text',
  ],
];

/** The messages of a request without cache marks, which move. */
function messagesOf(server: FakeServer, n: number): { role: string; content: unknown }[] {
  const body = server.requests[n]?.body as { messages?: unknown[]; input?: unknown[] } | undefined;
  const { messages, input } = body ?? {};
  const text = JSON.stringify(
    (messages ?? input ?? []).filter((each) => (each as { role: string }).role !== 'system'),
  );
  return JSON.parse(text.replaceAll(',"cache_control":{"type":"ephemeral"}', '')) as never;
}

test.each(VENDORS)('%s gets the image, and the next turn begins with the same bytes', async (...vendor) => {
  const [, start, more, image, textType] = vendor;
  await using server = await start();
  const agent = { id: 'a', model: 'm', baseUrl: server.url, apiKeyEnv: 'KEY', ...more } as AgentInput;
  await using troupe = await openTroupe({ agents: [agent] }, { env: ENV });
  await show(troupe, [CHART, { mediaType: 'image/webp', data: PICTURES.webp.data }]);
  await troupe.send(ROOM, { author: UMA, to: ['a'], content: 'And its colour?' });
  await troupe.idle();

  const first = messagesOf(server, 0);
  expect(first).toEqual([
    {
      ...(textType === 'input_text' && { type: 'message' }),
      role: 'user',
      content: [
        image('image/png', PICTURES.png.data),
        image('image/webp', PICTURES.webp.data),
        {
          type: textType,
          text: expect.stringMatching(
            /^What is it\?\n\[image: chart\.png, image\/png, 1 kB\]\n\[image: image\/webp, 1 kB\]\n\n\[reminder #/,
          ) as string,
        },
      ],
    },
  ]);
  expect(JSON.stringify(messagesOf(server, 1).slice(0, first.length))).toBe(JSON.stringify(first));
  const prompt = await troupe.promptOf(`${ROOM}:a:2`);
  expect(prompt.verified).toBe(true);
  expect(prompt.messages[1]).toMatchObject({
    role: 'user',
    images: [{ hash: sha256(PNG), mediaType: 'image/png' }, { mediaType: 'image/webp' }],
  });
});

test('a model without image support gets a note, and the recorded prompt names the image all the same', async () => {
  await using room = await company(['a']);
  await show(room.troupe, [CHART]);
  const [message] = room.raw('a');
  expect(message?.content).toMatch(
    /^What is it\?\n\[image: chart\.png, image\/png, 1 kB\]\n\n\[reminder #(\d{6})\]\n[^]*\n#\1\n\[this model is not shown images\]$/,
  );
  expect(JSON.stringify(room.requests('a'))).not.toContain(PICTURES.png.data);
  const prompt = await room.troupe.promptOf(`${ROOM}:a:1`);
  expect(prompt).toMatchObject({ verified: true, messages: [{}, { images: [{ hash: sha256(PNG) }] }] });
  expect(JSON.stringify(prompt.messages)).not.toContain('not shown');
});

test('images that an agent missed come with the block, in order, even if messages are joined', async () => {
  const quirks = { images: true, mergeConsecutive: true };
  await using room = await company(['a', 'b'], { agents: { a: { quirks } } });
  await room.say(UMA, 'a', 'Hello');
  await room.troupe.send(ROOM, { author: VIK, content: 'Look', attachments: [CHART] });
  await show(room.troupe, [{ mediaType: 'image/gif', data: PICTURES.gif.data }]);
  const last = room.raw('a').at(-1) as unknown as {
    content: { type: string; image_url?: { url: string }; text?: string }[];
  };
  expect(last.content.map(({ type }) => type)).toEqual(['image_url', 'text', 'image_url', 'text']);
  expect(last.content[0]?.image_url?.url).toBe(dataUrl('image/png', PICTURES.png.data));
  expect(last.content[1]?.text).toMatch(
    /^\[new #\d{6}\]\n\[Vik(?: [\d :-]+)?\] Look\n \[image: chart\.png, image\/png, 1 kB\]\n#$/,
  );
  expect(last.content[2]?.image_url?.url).toBe(dataUrl('image/gif', PICTURES.gif.data));
});

test('a short text is part of the message, other files are named, and neither is a picture', async () => {
  await using room = await company(['a'], SEES);
  await show(room.troupe, [
    { name: 'notes.md', mediaType: 'text/markdown; charset=utf-8', data: Buffer.from('# Notes\n- ü') },
    { name: 'report.pdf', mediaType: 'application/pdf', data: Buffer.alloc(120_000, 'x') },
    { name: 'long.txt', mediaType: 'text/plain', data: Buffer.alloc(65_537, 'x') },
    { name: 'latin.txt', mediaType: 'text/plain', data: Buffer.from('ü', 'latin1') },
  ]);
  expect(room.sent('a')).toEqual([
    'user: What is it? [text: notes.md] # Notes - ü [file: report.pdf, application/pdf, 120 kB] ' +
      '[file: long.txt, text/plain, 66 kB] [file: latin.txt, text/plain, 1 kB]',
  ]);
});

test('a message with only an image is answered', async () => {
  await using room = await company(['a'], SEES);
  await show(room.troupe, [CHART], '');
  expect(JSON.stringify(room.raw('a'))).toContain('"text":"[image: chart.png, image/png, 1 kB]\\n');
  expect(await room.kinds()).toContain('turn.done');
});

test('an image is recognised by its bytes', async () => {
  await using room = await company(['a'], SEES);
  const unnamed = Object.values(PICTURES).map(({ data }) => ({
    mediaType: 'application/octet-stream',
    data,
  }));
  await show(room.troupe, unnamed);
  const { events } = await room.troupe.events(ROOM, { limit: 1 });
  const attachments = events.flatMap(({ kind, body }) =>
    kind === 'message' ? (body.attachments ?? []) : [],
  );
  expect(attachments.map(({ type, mediaType }) => `${type} ${mediaType}`)).toEqual(
    Object.values(PICTURES).map(({ mediaType }) => `image ${mediaType}`),
  );
});

test('the newest twenty images are shown, and the messages of the others say that theirs are not', async () => {
  await using room = await company(['a'], SEES);
  const pictures = Array.from({ length: 22 }, (_, n) => pngNumber(n));
  const attach = (from: number, to: number) =>
    pictures.slice(from, to).map((data) => ({ mediaType: 'image/png', data }));
  await show(room.troupe, attach(0, 3));
  await show(room.troupe, attach(3, 16));
  expect(shown(room.requests('a').at(-1)?.body)).toHaveLength(16);
  await show(room.troupe, attach(16, 22));
  const { body } = room.requests('a').at(-1) ?? {};
  expect(shown(body)).toEqual(pictures.slice(2).map((png) => dataUrl('image/png', png.toString('base64'))));
  expect(JSON.stringify(body)).toContain(
    '\\n[image 1 of this message is not shown]\\n[image 2 of this message is not shown]"',
  );
});

test('if images exceed a request, the oldest are not shown', async () => {
  await using room = await company(['a'], SEES);
  const largest = 3_932_160;
  await show(
    room.troupe,
    Array.from({ length: 5 }, (_, n) => ({ mediaType: 'image/png', data: pngNumber(n, largest) })),
  );
  const { body } = room.requests('a')[0] ?? {};
  const urls = shown(body);
  expect(urls).toHaveLength(4);
  expect(urls[0]).toBe(dataUrl('image/png', pngNumber(1, largest).toString('base64')));
  expect(JSON.stringify((body as { messages: unknown[] }).messages[1])).toContain(
    '[image 1 of this message is not shown]',
  );
});

function shown(body: unknown): string[] {
  const { messages } = body as { messages: { content: string | { image_url?: { url: string } }[] }[] };
  return messages.flatMap(({ content }) =>
    typeof content === 'string' ? [] : content.flatMap(({ image_url }) => image_url?.url ?? []),
  );
}

test('an imported message without its image says so', async () => {
  await using room = await company(['a'], SEES);
  await show(room.troupe, [CHART]);
  let exported = '';
  for await (const line of room.troupe.export(ROOM)) exported += line;
  await using other = await company(['a'], SEES);
  await other.troupe.import(chunksOf(exported), { format: 'troupe' });
  await other.say(UMA, 'a', 'And now?');
  expect(other.raw('a')[0]?.content).toContain('What is it?\n[image: chart.png, image/png, 1 kB]');
  expect(other.raw('a')[0]?.content).toContain('[image 1 of this message is not shown]');
  expect(await other.troupe.promptOf(`${ROOM}:a:2`)).toMatchObject({ verified: true });
});

test('a recording has the name of an image instead of the image, and another image is another request', async () => {
  const dir = mkdtempSync(path.join(tmpdir(), 'troupe-images-'));
  try {
    const file = path.join(dir, 'r.jsonl');
    {
      await using room = await company(['a'], { ...SEES, record: file });
      await show(room.troupe, [CHART]);
    }
    const recorded = readFileSync(file, 'utf8');
    expect(recorded).toContain(sha256(PNG));
    expect(recorded).not.toContain(PICTURES.png.data);
    await using room = await company(['a'], { ...SEES, replay: file });
    await show(room.troupe, [CHART]);
    expect(await room.kinds()).toContain('turn.done');
    const other = { ...CHART, data: pngNumber(1, 90) };
    await room.troupe.send('other', { author: UMA, to: ['a'], content: 'What is it?', attachments: [other] });
    await room.troupe.idle();
    const { events } = await room.troupe.events('other');
    expect(events.find(({ kind }) => kind === 'turn.failed')?.body).toMatchObject({
      code: 'provider_invalid_request',
    });
  } finally {
    rmSync(dir, { recursive: true });
  }
});

test('a repeated message is stored once, and refused with another image under its id', async () => {
  await using room = await company(['a'], SEES);
  const message = { id: 'm1' as EventId, author: UMA, content: 'Look', attachments: [CHART] };
  expect(await room.troupe.send(ROOM, message)).toMatchObject({ kind: 'appended' });
  const asText = { ...CHART, data: PICTURES.png.data };
  expect(await room.troupe.send(ROOM, { ...message, attachments: [asText] })).toMatchObject({
    kind: 'exists',
  });
  const other = { ...message, attachments: [{ ...CHART, data: pngNumber(1) }] };
  await expect(room.troupe.send(ROOM, other)).rejects.toMatchObject({ code: 'event_conflict' });
});

test('the bytes of attachments can be read', async () => {
  await using room = await company(['a'], SEES);
  const notes = { name: 'notes.md', mediaType: 'text/markdown', data: Buffer.from('# Süd') };
  const blob = { mediaType: 'application/octet-stream', data: Buffer.from([0, 255, 7]) };
  await show(room.troupe, [CHART, notes, blob]);
  const read = (index: number, seq = 1) => room.troupe.conversation(ROOM).attachment(seq, index);
  const found = await Promise.all([read(0), read(1), read(2)]);
  expect(found.map(({ data }) => Buffer.from(data))).toEqual([PNG, notes.data, blob.data]);
  expect(found).toMatchObject([
    { name: 'chart.png', mediaType: 'image/png' },
    { name: 'notes.md', mediaType: 'text/markdown' },
    { mediaType: 'application/octet-stream' },
  ]);
  for (const [index, seq] of [[3], [-1], [0, 2], [0, 0], [0, 999]] as const)
    await expect(read(index, seq)).rejects.toMatchObject({ code: 'event_invalid' });
  await expect(room.troupe.attachment('other', 1, 0)).rejects.toMatchObject({ code: 'conversation_unknown' });
});
