import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { PICTURES } from '../support/pictures.ts';
import { workplace } from './harness.ts';

test('send attaches files, each with the type of its bytes and name', async () => {
  using place = workplace();
  const put = (name: string, bytes: Buffer) => {
    writeFileSync(path.join(place.dir, name), bytes);
    return ['--attach', name];
  };
  const files = [
    put('chart.png', Buffer.from(PICTURES.webp.data, 'base64')),
    put('notes.md', Buffer.from('# Notes')),
    put('Makefile', Buffer.from('all:')),
    put('data.bin', Buffer.from([0, 1, 2])),
  ].flat();
  const sent = await place.call(['send', 'c1', '', '--to', 'worker', '--json', ...files]);
  expect([sent.code, sent.err]).toEqual([0, '']);
  expect(sent.json).toMatchObject({
    event: {
      body: {
        content: '',
        attachments: [
          { type: 'image', mediaType: 'image/webp', name: 'chart.png' },
          { type: 'text', mediaType: 'text/markdown', name: 'notes.md', text: '# Notes' },
          { type: 'text', mediaType: 'text/plain', name: 'Makefile', text: 'all:' },
          { type: 'file', mediaType: 'application/octet-stream', name: 'data.bin', bytes: 3 },
        ],
      },
    },
    replies: [{ body: { content: 'work 1' } }],
  });
  const context = await place.call(['context', 'c1', 'worker']);
  expect(context.out).toMatch(/── 1 user, 1 image · seq 1 ─/);
  expect(context.out).toContain('[file: data.bin, application/octet-stream, 1 kB]');
});

test('a missing file, or one with a wrong extension, is refused with its name', async () => {
  using place = workplace();
  const gone = await place.call(['send', 'c1', 'x', '--attach', 'gone.png']);
  expect([gone.code, gone.err]).toEqual([
    1,
    expect.stringMatching(/^event_invalid: --attach: cannot read gone\.png: there is no such file/),
  ]);
  place.write('chart.png', 'no picture at all');
  const wrong = await place.call(['send', 'c1', 'x', '--attach', 'chart.png']);
  expect([wrong.code, wrong.err]).toEqual([
    1,
    expect.stringMatching(/^event_invalid: attachments\.0\.mediaType: it is image\/png/),
  ]);
});
