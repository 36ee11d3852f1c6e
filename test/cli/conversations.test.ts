import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { workplace } from './harness.ts';

test('the command line changes membership, and archives and reopens a conversation', async () => {
  using place = workplace();
  await place.call(['send', 'c1', 'Hello']);
  const blocked = await place.call(['block', 'c1', 'worker', '--reason', 'noise', '--as', 'Ana', '--json']);
  expect(blocked.json).toMatchObject({
    event: { kind: 'membership.changed', author: { id: 'ana' }, body: { change: 'left', blocked: true } },
  });
  const back = await place.call(['agent', 'unblock', 'c1', '@worker']);
  expect([back.err, back.out]).toEqual(['', expect.stringMatching(/^@worker takes part in c1, seq \d+\n$/)]);
  const wrong = await place.call(['agent', 'unblock', 'c1', 'worker', '--json']);
  expect(wrong).toMatchObject({ code: 1, json: { error: { code: 'command_refused' } } });
  for (const reinstate of [['agent', 'reinstate'], ['reinstate'], ['agent', 'recall'], ['recall']]) {
    await place.call(['retire', 'c1', 'worker']);
    const again = await place.call([...reinstate, 'c1', 'worker']);
    expect([again.err, again.out]).toEqual(['', expect.stringMatching(/^reinstate of @worker in c1/)]);
  }
  const compact = await place.call(['compact', 'c1', 'worker']);
  expect(compact.out).toMatch(/^@worker compacts its prompt before its next turn in c1, seq \d+\n$/);
  expect((await place.call(['archive', 'c1', '--reason', 'done'])).out).toMatch(/^archived in c1/);
  expect((await place.call(['reopen', 'c1'])).out).toMatch(/^reopened in c1/);
});

test('delete keeps a copy unless told otherwise, and the copy imports as the same conversation', async () => {
  using place = workplace();
  await place.call(['send', 'c1', 'Hello']);
  const unsaid = await place.call(['delete', 'c1', '--json']);
  expect(unsaid).toMatchObject({ code: 1, json: { error: { data: { path: 'export' } } } });
  const file = path.join(place.dir, 'c1.jsonl');
  writeFileSync(file, 'precious');
  const there = await place.call(['delete', 'c1', '--export', file, '--json']);
  expect(there).toMatchObject({ code: 1, json: { error: { code: 'data_unwritable' } } });
  expect(readFileSync(file, 'utf8')).toBe('precious');
  const kept = path.join(place.dir, 'kept.jsonl');
  const done = await place.call(['delete', 'c1', '--export', kept]);
  expect([done.code, done.err]).toEqual([0, '']);
  expect(done.out).toMatch(/^c1 is deleted; \d+ events saved to /);
  expect((await place.call(['ls', '--json'])).json).toMatchObject({ conversations: [], unread: 0 });
  await place.call(['import', kept]);
  expect((await place.call(['ls', '--json'])).json).toMatchObject({ conversations: [{ id: 'c1' }] });
  expect((await place.call(['delete', 'c1', '--no-export', '--json'])).json).toMatchObject({ out: null });
  const gone = path.join(place.dir, 'gone.jsonl');
  const unknown = await place.call(['delete', 'c1', '--export', gone, '--json']);
  expect(unknown).toMatchObject({ code: 1, json: { error: { code: 'conversation_unknown' } } });
  expect(existsSync(gone)).toBe(false);
});

test('a conversation of a running server is deleted by the server', async () => {
  using place = workplace();
  await using dev = await place.dev();
  await place.call(['send', 'c1', 'Hello', '--wait', '--url', dev.url]);
  const kept = path.join(place.dir, 'kept.jsonl');
  const done = await place.call(['delete', 'c1', '--export', kept, '--url', dev.url, '--json']);
  expect([done.err, done.json]).toMatchObject(['', { conversation: 'c1', conversations: 1 }]);
  expect(readFileSync(kept, 'utf8').trim().split('\n')).toHaveLength(Number(done.json['events']) + 1);
});
