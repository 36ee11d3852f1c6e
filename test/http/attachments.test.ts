import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { IS_DISTRIBUTED } from '../support/mode.ts';
import { PICTURES, pngNumber, sha256 } from '../support/pictures.ts';
import { ANA, startApi } from './harness.ts';

const PATH = '/api/conversations/c1/events';
const { png, jpeg } = PICTURES;
const CHART = { name: 'chart.png', ...png };

function sized(width: number): string {
  const bytes = Buffer.from(png.data, 'base64');
  bytes.writeUInt32BE(width, 16);
  return bytes.toString('base64');
}

const zeros = (bytes: number) => Buffer.alloc(bytes).toString('base64');

test('an event contains the hash of an image, the words of a text, and no bytes', async () => {
  await using api = await startApi();
  const text = { name: 'a.json', mediaType: 'application/json', data: btoa('{"a":1}') };
  const body = { id: 'm1', author: ANA, to: ['echo'], content: '', attachments: [CHART, text] };
  const sent = await api.post(PATH, body);
  expect(sent.status).toBe(201);
  const { event } = sent.body as { event: { body: unknown } };
  expect(event.body).toEqual({
    content: '',
    attachments: [
      {
        type: 'image',
        hash: sha256(Buffer.from(png.data, 'base64')),
        mediaType: 'image/png',
        name: 'chart.png',
        bytes: 73,
      },
      { type: 'text', mediaType: 'application/json', name: 'a.json', text: '{"a":1}' },
    ],
  });
  expect((await api.post(PATH, body)).status).toBe(200);
  const other = { ...body, attachments: [{ ...CHART, data: pngNumber(1).toString('base64') }, text] };
  const { status, body: told } = await api.post(PATH, other);
  expect([status, told]).toMatchObject([409, { error: { code: 'event_conflict' } }]);
  await api.troupe.idle();
  const { body: log } = await api.get(PATH);
  expect(log['events']).toContainEqual(
    expect.objectContaining({ kind: 'message', author: expect.objectContaining({ id: 'echo' }) as object }),
  );
});

test.each<[string, number, string, string, object[]]>([
  [
    'bytes that are another image',
    400,
    'event_invalid',
    'attachments.0.mediaType',
    [{ ...png, mediaType: 'image/gif' }],
  ],
  [
    'bytes that are no image',
    400,
    'event_invalid',
    'attachments.0.mediaType',
    [{ ...png, data: btoa('hello, world') }],
  ],
  [
    'an image cut off in its header',
    400,
    'event_invalid',
    'attachments.0.mediaType',
    [{ ...jpeg, data: jpeg.data.slice(0, 80) }],
  ],
  ['an image of no width', 400, 'event_invalid', 'attachments.0.mediaType', [{ ...png, data: sized(0) }]],
  ['more pixels than vendors take', 400, 'event_invalid', 'attachments.0', [{ ...png, data: sized(8_001) }]],
  [
    'a second piece that is not base64',
    400,
    'event_invalid',
    'attachments.1.data',
    [CHART, { ...png, data: 'a-b_' }],
  ],
  [
    'base64 without its padding',
    400,
    'event_invalid',
    'attachments.0.data',
    [{ mediaType: 'text/plain', data: 'YQ' }],
  ],
  [
    'base64 with line breaks',
    400,
    'event_invalid',
    'attachments.0.data',
    [{ mediaType: 'text/plain', data: 'YWFh\nYWFh' }],
  ],
  ['nothing', 400, 'event_invalid', 'attachments.0.data', [{ mediaType: 'text/plain', data: '' }]],
  ['no type', 400, 'event_invalid', 'attachments.0.mediaType', [{ data: png.data }]],
  [
    'a type that is none',
    400,
    'event_invalid',
    'attachments.0.mediaType',
    [{ mediaType: 'chart', data: png.data }],
  ],
  ['a name without end', 400, 'event_invalid', 'attachments.0.name', [{ ...png, name: 'n'.repeat(256) }]],
  ['a hash of its own', 400, 'event_invalid', 'attachments.0.hash', [{ ...png, hash: 'x' }]],
  ['17 pieces', 400, 'event_invalid', 'attachments', Array.from({ length: 17 }, () => CHART)],
  [
    'a file above 5 MiB',
    413,
    'event_too_large',
    'attachments.0',
    [{ mediaType: 'a/b', data: zeros(5_242_881) }],
  ],
  [
    'an image above the limit of the vendors',
    413,
    'event_too_large',
    'attachments.0',
    [{ ...png, data: pngNumber(1, 3_932_161).toString('base64') }],
  ],
  [
    'more than 20 MiB in all',
    413,
    'event_too_large',
    'attachments',
    Array.from({ length: 5 }, () => ({ mediaType: 'a/b', data: zeros(4_194_305) })),
  ],
])('%s is refused with its path, and nothing is stored', async (_, status, code, at, attachments) => {
  const data = mkdtempSync(path.join(tmpdir(), 'troupe-attachments-'));
  try {
    {
      await using api = await startApi({ troupe: { data } });
      const answer = await api.post(PATH, { author: ANA, to: ['echo'], content: 'x', attachments });
      expect([answer.status, answer.body]).toMatchObject([status, { error: { code, data: { path: at } } }]);
      expect(await api.troupe.conversations()).toEqual([]);
      expect(api.errors).toEqual([]);
    }
    if (!IS_DISTRIBUTED) expect(storedLengths(data)).toEqual([]);
  } finally {
    rmSync(data, { recursive: true });
  }
});

/** Values stored beside the log that are as long as an image. */
function storedLengths(data: string): unknown[] {
  const database = new DatabaseSync(path.join(data, 'troupe.db'));
  const rows = database.prepare('SELECT length(data) AS length FROM registers WHERE length(data) > 80').all();
  database.close();
  return rows;
}

test('the text of a message keeps its limit, whatever is attached', async () => {
  await using api = await startApi();
  const attachments = [{ mediaType: 'a/b', data: zeros(3_000_000) }];
  expect((await api.post(PATH, { author: ANA, content: 'x', attachments })).status).toBe(201);
  const content = 'x'.repeat(1_048_577);
  for (const body of [
    { author: ANA, content },
    { author: ANA, content, attachments },
  ]) {
    const answer = await api.post(PATH, body);
    expect([answer.status, answer.body]).toMatchObject([
      413,
      { error: { code: 'event_too_large', data: { limit: 1_048_576 } } },
    ]);
  }
});

test('the bytes of an attachment are read by the place of its message, and never under the type that its sender named', async () => {
  await using api = await startApi();
  const page = { name: 'a.html', mediaType: 'text/html', data: btoa('\0<script>') };
  const body = { id: 'm1', author: ANA, to: [], content: 'Look.', attachments: [CHART, page] };
  expect((await api.post(PATH, body)).status).toBe(201);
  const read = async (query: string) => api.app.request(`/api/conversations/c1/attachment?${query}`);
  const image = await read('seq=1&index=0');
  expect(Buffer.from(await image.arrayBuffer()).toString('base64')).toBe(png.data);
  const html = await read('seq=1&index=1');
  expect([...new Uint8Array(await html.arrayBuffer())]).toEqual([...Buffer.from('\0<script>')]);
  for (const { headers } of [image, html]) {
    expect(headers.get('content-type')).toBe('application/octet-stream');
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('content-disposition')).toMatch(/^attachment; filename="(?:chart\.png|a\.html)"$/);
  }
  expect((await read('seq=1&index=2')).status).toBe(400);
  expect((await read('seq=9&index=0')).status).toBe(400);
});
