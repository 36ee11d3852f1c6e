import { expect, test } from 'vitest';
import { readAttachments } from '../../src/library/facade/send-message.ts';
import { PICTURES } from '../support/pictures.ts';

const { png, jpeg, losslessWebp, webp, extendedWebp, gif } = PICTURES;

/** The detected kind of attachment, and its type. */
function taken(mediaType: string, data: string | Buffer): [string, string] {
  const [attachment] = readAttachments([{ mediaType, data }]).attachments;
  return [attachment?.type ?? '', attachment?.mediaType ?? ''];
}

function pngOf(width: number, height: number): Buffer {
  const bytes = Buffer.from(png.data, 'base64');
  bytes.writeUInt32BE(width, 16);
  bytes.writeUInt32BE(height, 20);
  return bytes;
}

test('an image without a specific type is recognised, and other content stays a file', () => {
  for (const { mediaType, data } of [png, jpeg, gif, webp, losslessWebp, extendedWebp]) {
    expect(taken('application/octet-stream', data)).toEqual(['image', mediaType]);
    expect(taken('application/pdf', data)).toEqual(['file', 'application/pdf']);
  }
  expect(taken('application/octet-stream', Buffer.from('words'))).toEqual([
    'file',
    'application/octet-stream',
  ]);
  expect(taken('image/jpg', jpeg.data)).toEqual(['image', 'image/jpeg']);
});

test.each([
  [8_000, 8_000, null],
  [8_001, 1, '8001 x 1'],
  [1, 8_001, '1 x 8001'],
  [0, 1, 'no image'],
  [1, 0, 'no image'],
])('an image of %i x %i pixels: %s', (width, height, why) => {
  const read = () => taken('image/png', pngOf(width, height));
  if (why === null) expect(read()).toEqual(['image', 'image/png']);
  else expect(read).toThrow(why);
});

test('a lossless WebP without its signature is no image', () => {
  const bytes = Buffer.from(losslessWebp.data, 'base64');
  bytes[20] = 0x2e;
  expect(() => taken('image/webp', bytes)).toThrow('no image');
  expect(taken('application/octet-stream', bytes)).toEqual(['file', 'application/octet-stream']);
});

test('the size of a JPEG is read from behind its tables', () => {
  const bytes = Buffer.from(jpeg.data, 'base64');
  // These bytes look like an image header whose size exceeds vendor limits, but they belong to a table.
  const table = Buffer.from('ffc40009ffffffffffffff', 'hex');
  const behind = Buffer.concat([bytes.subarray(0, 2), table, bytes.subarray(2)]);
  expect(taken('image/jpeg', behind)).toEqual(['image', 'image/jpeg']);
});

test('a text in another encoding is a file with unchanged bytes', () => {
  for (const bytes of [Buffer.from('wörter', 'latin1'), Buffer.from('\uFEFFwords', 'utf16le')]) {
    const { attachments, bodies } = readAttachments([{ mediaType: 'text/plain', data: bytes }]);
    expect(attachments).toMatchObject([{ type: 'file', mediaType: 'text/plain', bytes: bytes.length }]);
    expect([...bodies.values()]).toEqual([bytes.toString('base64')]);
  }
});
