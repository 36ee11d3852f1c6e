import { expect, test } from 'vitest';
import { ANA, startApi } from './harness.ts';

test('mode and directive are commands over HTTP: the answer is the event that they append', async () => {
  await using api = await startApi();
  await api.troupe.send('c1', { author: ANA, content: 'begin' });
  const mode = await api.post('/api/commands', {
    command: 'mode',
    conversation: 'c1',
    mode: 'run',
    run: 'r1',
    author: ANA,
  });
  expect(mode).toMatchObject({
    status: 202,
    body: { seq: 2, event: { kind: 'mode.changed', author: ANA, body: { mode: 'run', run: 'r1' } } },
  });
  const directive = {
    command: 'directive',
    conversation: 'c1',
    run: 'r1',
    directive: 'ship',
    status: 'active',
  };
  expect(await api.post('/api/commands', { ...directive, brief: 'test it' })).toMatchObject({
    status: 202,
    body: {
      event: {
        kind: 'run.directive',
        author: { id: 'operator' },
        body: { run: 'r1', directive: 'ship', brief: 'test it', status: 'active' },
      },
    },
  });
  expect((await api.get('/api/conversations/c1')).body).toMatchObject({
    state: 'open.run',
    head: 3,
    run: { run: 'r1', brief: 'test it' },
  });
});

test.each([
  [{ command: 'mode', conversation: 'c1', mode: 'sleep' }, 400, 'mode'],
  [{ command: 'mode', conversation: 'c1' }, 400, 'mode'],
  [{ command: 'mode', conversation: 'c1', mode: 'run', run: 'r 1' }, 400, 'run'],
  [{ command: 'directive', conversation: 'c1', run: 'r1', directive: 'x' }, 400, 'status'],
  [
    { command: 'directive', conversation: 'c1', run: 'r1', directive: '', status: 'active' },
    400,
    'directive',
  ],
  [{ command: 'mode', conversation: 'c1', mode: 'chat', agent: 'echo' }, 400, 'agent'],
])('%j is refused with %d, naming %s', async (body, status, path) => {
  await using api = await startApi();
  await api.troupe.send('c1', { author: ANA, content: 'begin' });
  const refused = await api.post('/api/commands', body);
  expect([refused.status, refused.body]).toMatchObject([
    status,
    { error: { code: 'event_invalid', data: { path } } },
  ]);
  expect((await api.get('/api/conversations/c1')).body).toMatchObject({ head: 1 });
});

test('an unknown conversation has no mode: 404', async () => {
  await using api = await startApi();
  const refused = await api.post('/api/commands', { command: 'mode', conversation: 'nope', mode: 'chat' });
  expect([refused.status, refused.body]).toMatchObject([404, { error: { code: 'conversation_unknown' } }]);
});

test('a message may name attachments and no other context', async () => {
  await using api = await startApi();
  const path = '/api/conversations/c1/events';
  const message = { author: ANA, content: 'look', context: { attachments: ['f-1'] } };
  expect(await api.post(path, message)).toMatchObject({
    status: 201,
    body: { event: { context: { attachments: ['f-1'] } } },
  });
  const forged = await api.post(path, { ...message, context: { persona: 'h' } });
  expect([forged.status, forged.body]).toMatchObject([400, { error: { code: 'event_invalid' } }]);
  const many = Array.from({ length: 65 }, (_, n) => `f-${n}`);
  expect((await api.post(path, { ...message, context: { attachments: many } })).status).toBe(400);
});

test('the document describes every command and its fields', async () => {
  await using api = await startApi();
  const { body } = await api.get('/api/openapi.json');
  const text = JSON.stringify(body['paths']);
  for (const field of ['"abort"', '"mode"', '"directive"', '"brief"', '"attachments"']) {
    expect(text).toContain(field);
  }
});
