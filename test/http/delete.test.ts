import { expect, test } from 'vitest';
import { ANA, startApi } from './harness.ts';

test('a conversation is deleted over HTTP once the client states how much of it is exported', async () => {
  await using api = await startApi();
  await api.troupe.send('c1', { author: ANA, to: ['echo'], content: 'hello' });
  await api.troupe.idle();
  const { head } = await api.troupe.state('c1');
  const remove = (query: string) => api.get(`/api/conversations/c1${query}`, { method: 'DELETE' });
  expect(await remove('')).toMatchObject({ status: 400, body: { error: { data: { path: 'exported' } } } });
  expect(await remove(`?exported=${head - 1}`)).toMatchObject({
    status: 409,
    body: { error: { code: 'command_refused', data: { events: head } } },
  });
  const exported = await api.app.request('/api/conversations/c1/export?threads=true');
  const kept = (await exported.text()).trim().split('\n').length - 1;
  expect(await remove(`?exported=${kept}`)).toMatchObject({
    status: 200,
    body: { conversations: 1, events: head, actors: 1 },
  });
  expect((await api.get('/api/conversations/c1')).status).toBe(404);
  expect(await remove('?exported=none')).toMatchObject({ status: 404 });
});

test('membership is changed with commands over HTTP', async () => {
  await using api = await startApi();
  await api.troupe.send('c1', { author: ANA, content: 'hello' });
  const about = { conversation: 'c1', agent: 'other', author: ANA };
  const joined = await api.post('/api/commands', { command: 'join', ...about, policy: 'fresh' });
  expect(joined).toMatchObject({
    status: 202,
    body: { event: { kind: 'membership.changed', body: { change: 'joined', policy: 'fresh' } } },
  });
  const left = await api.post('/api/commands', { command: 'leave', ...about, reason: 'done here' });
  expect(left).toMatchObject({
    status: 202,
    body: { event: { kind: 'membership.changed', body: { change: 'left', reason: 'done here' } } },
  });
  expect(await api.post('/api/commands', { command: 'block', ...about, agent: 'nobody' })).toMatchObject({
    status: 400,
    body: { error: { code: 'agent_unknown' } },
  });
  expect(await api.post('/api/commands', { command: 'spawn', conversation: 'c1' })).toMatchObject({
    status: 400,
    body: { error: { data: { path: 'template' } } },
  });
});
