import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createRedaction } from '../../src/events/redaction.ts';
import type { Author, EventDraft, EventId } from '../../src/events/index.ts';

const BO: Author = { kind: 'agent', id: 'bo', name: 'Bo' };
const WHERE = { kind: 'step', author: BO } as const;
const redaction = createRedaction(
  (text) => text.replaceAll('SECRET', '[gone]'),
  () => {},
);

function stepWith(body: object): EventDraft {
  return { id: 'e1' as EventId, author: BO, to: [], kind: 'step', body } as EventDraft;
}

test('arguments without secrets keep their bytes, and others stay JSON', () => {
  const asWritten = '{ "a" : 1.0,\n"b":"\\u0061" }';
  expect(redaction.json(asWritten, WHERE)).toBe(asWritten);
  expect(redaction.json('{"SECRET": ["x SECRET", {"id": "SECRET"}], "n": 1}', WHERE)).toBe(
    '{"[gone]":["x [gone]",{"id":"[gone]"}],"n":1}',
  );
  expect(redaction.json('{"a": SECRET', WHERE)).toBe('{"a": [gone]');
  fc.assert(
    fc.property(fc.json(), (json) => {
      const withSecret = JSON.stringify([JSON.parse(json), 'SECRET']);
      return (
        redaction.json(json, WHERE) === json && Array.isArray(JSON.parse(redaction.json(withSecret, WHERE)))
      );
    }),
  );
});

test('redacted reasoning loses its signature', () => {
  const ofModel = { provider: 'p', model: 'm', signature: 'signed' };
  const given = (text: string, signature = 'signed') =>
    stepWith({ index: 0, content: '', calls: [], reasoning: { ...ofModel, text, signature } });
  expect(redaction.draft(given('all fine'))).toEqual(given('all fine'));
  for (const draft of [given('a SECRET'), given('fine', 'words: a SECRET')]) {
    const { body } = redaction.draft(draft) as { body: { reasoning?: object } };
    expect(body.reasoning).not.toHaveProperty('signature');
    expect(JSON.stringify(body)).not.toContain('SECRET');
  }
});

test('ids, names and references stay, and any other text is redacted', () => {
  const call = { id: 'SECRET-1', name: 'SECRET_tool', args: '{"x":"SECRET"}' };
  const { body, id } = redaction.draft(stepWith({ index: 0, content: 'SECRET', calls: [call] }));
  expect([id, body]).toEqual([
    'e1',
    {
      index: 0,
      content: '[gone]',
      calls: [{ id: 'SECRET-1', name: 'SECRET_tool', args: '{"x":"[gone]"}' }],
    },
  ]);
  // Unknown fields are treated as text.
  expect(redaction.body({ invented: { later: ['SECRET'] } }, WHERE)).toEqual({
    invented: { later: ['[gone]'] },
  });
});

test('reasons of people are text, those of the runtime are not', () => {
  const hide = createRedaction(
    () => 'hidden',
    () => {},
  );
  const reason = { reason: 'over_budget' };
  expect(hide.body(reason, { kind: 'membership.changed', author: BO })).toEqual({ reason: 'hidden' });
  expect(hide.body(reason, { kind: 'prune', author: BO })).toEqual(reason);
});
