import { expect, test } from 'vitest';
import { createRedaction } from '../../src/events/redaction.ts';
import { MAX_TEXT_BYTES, readAttachments, redactAttachments } from '../../src/library/facade/send-message.ts';
import type { NewAttachment } from '../../src/library/troupe.ts';

const ANA = { kind: 'user', id: 'u1', name: 'Ana' } as const;
const seen: string[] = [];
const redaction = createRedaction(
  (text) => {
    seen.push(text);
    return text.replaceAll('SECRET', '[gone]');
  },
  () => {},
);

function redacted(attachment: NewAttachment): NewAttachment | undefined {
  return redactAttachments([attachment], ANA, redaction)[0];
}

test.each([
  'text/plain',
  ' text/plain',
  '\ttext/x-log ',
  'TEXT/Plain; charset=utf-8',
  'application/json',
  ' Application/JSON',
  'application/yaml',
  'application/x-ndjson',
])('what is kept of a text of the type "%s" is redacted, however long it is', (mediaType) => {
  for (const text of ['a SECRET', `${'x'.repeat(MAX_TEXT_BYTES)} SECRET`]) {
    const bytes = Buffer.from(text);
    for (const data of [bytes, bytes.toString('base64')]) {
      const attachments = redactAttachments([{ mediaType, data }], ANA, redaction);
      const read = readAttachments(attachments);
      const bodies = [...read.bodies.values()].map((body) => Buffer.from(body, 'base64').toString());
      const kept = JSON.stringify([read.attachments, bodies]);
      expect(kept).not.toContain('SECRET');
      expect(kept).toContain('[gone]');
    }
  }
});

test('an attachment without secrets is unchanged, byte for byte', () => {
  for (const data of [Buffer.from('\uFEFFplain'), Buffer.from('plain').toString('base64')]) {
    const given = { name: 'a.txt', mediaType: 'text/plain', data };
    expect(redacted(given)).toBe(given);
  }
  const marked = redacted({ mediaType: 'text/plain', data: Buffer.from('\uFEFFSECRET') });
  expect(Buffer.from(marked?.data as Buffer).toString()).toBe('\uFEFF[gone]');
});

test('images, other encodings and invalid attachments are not inspected', () => {
  seen.length = 0;
  for (const given of [
    { mediaType: 'image/png', data: Buffer.from('SECRET') },
    { mediaType: 'application/jsonsecret', data: Buffer.from('SECRET') },
    { mediaType: 'text/plain', data: Buffer.from('SECRET\u00ff', 'latin1') },
    { mediaType: 'text/plain', data: `${Buffer.from('SECRET').toString('base64')}\n` },
  ])
    expect(redacted(given)).toBe(given);
  expect(seen).toEqual([]);
});
