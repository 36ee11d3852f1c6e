import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { openStage } from '../../doors/test/stage.ts';
import { createTroupeClient, words } from '../src/index.ts';

test('a wrong key, a missing scope and the conversation of another tenant are refused in words', async () => {
  await using stage = await openStage(['bo'], { isKeyed: true });
  const { troupe } = stage;
  const { secret: reads } = await troupe.keys.create({ name: 'reader', scopes: ['read'] });
  const { secret: writes } = await troupe.keys.create({ name: 'writer', scopes: ['read', 'write'] });
  const other = await troupe.forTenant('other').keys.create({ name: 'other', scopes: ['read', 'write'] });
  const author = { kind: 'user', id: 'ana', name: 'Ana' } as const;
  const message = { author, to: ['bo'], content: 'Hello' };
  const client = (token: string) => createTroupeClient({ url: stage.url, token });
  const wrong = {
    code: 'command_refused',
    policy: 'fix_input',
    data: { status: 401, refused: 'token_required' },
  };
  await expect(client('wrong').ask('c1', message)).rejects.toMatchObject(wrong);
  await expect(client('wrong').follow('c1').next()).rejects.toMatchObject(wrong);
  await expect(client(reads).ask('c1', message)).rejects.toMatchObject({
    data: { refused: 'scope_missing' },
  });
  expect(await client(writes).ask('c1', message)).toMatchObject({ text: 'bo answers 1' });
  await expect(client(other.secret).tasks('c1')).rejects.toMatchObject({ code: 'conversation_unknown' });
  await expect(
    client(other.secret).api.request('GET /api/conversations/{conversation}/answer', {
      params: { conversation: 'c1' },
      query: { seq: 1 },
    }),
  ).rejects.toMatchObject({ code: 'conversation_unknown' });
  await expect(
    client(reads).api.request('GET /api/conversations/{conversation}/answer', {
      params: { conversation: 'c1' },
      query: { seq: 0 },
    }),
  ).rejects.toMatchObject({ code: 'event_invalid', data: { path: 'seq' } });
});

test.each([
  ['a path', 'a/../b', { to: ['bo'], content: 'x' }, 'event_invalid'],
  ['an unknown agent', 'c1', { to: ['nobody'], content: 'x' }, 'agent_unknown'],
  ['an id of the runtime', 'c1', { id: 'c1:bo:1', to: ['bo'], content: 'x' }, 'event_conflict'],
  ['an object for words', 'c1', { to: ['bo'], content: {} as string }, 'event_invalid'],
])('%s is refused with its code, and is not repeated', async (_, conversation, message, code) => {
  await using stage = await openStage(['bo']);
  const troupe = createTroupeClient({ url: stage.url });
  await expect(troupe.ask(conversation, message)).rejects.toMatchObject({ code, policy: 'fix_input' });
});

test('the same id with other words is a conflict', async () => {
  await using stage = await openStage(['bo']);
  const troupe = createTroupeClient({ url: stage.url });
  await troupe.ask('c1', { id: 'm1', to: ['bo'], content: 'x' });
  const again = troupe.ask('c1', { id: 'm1', to: ['bo'], content: 'y' });
  await expect(again).rejects.toMatchObject({ code: 'event_conflict', policy: 'fix_input' });
});

test('a server that is no troupe is said to be none', async () => {
  const server = createServer((_, response) => response.writeHead(404).end('<h1>Hello</h1>'));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const troupe = createTroupeClient({ url: `http://127.0.0.1:${port}` });
  await expect(troupe.ask('c1', 'x')).rejects.toMatchObject({ code: 'internal', policy: 'stop' });
});

test('doubled, late and repeated pieces of an answer are told once; a new attempt voids the old one', () => {
  const next = words();
  const piece = (index: number, text: string, attempt = 1) =>
    next({
      type: 'text',
      conversation: 'c1',
      agent: 'bo',
      turn: 'c1:bo:1',
      attempt,
      step: 1,
      round: 1,
      index,
      text,
    } as Parameters<typeof next>[0]).map((each) => (each.type === 'text' ? each.text : each.type));
  expect(piece(0, 'Hel')).toEqual(['Hel']);
  expect(piece(0, 'Hello')).toEqual(['lo']);
  expect(piece(3, 'lo')).toEqual([]);
  expect(piece(9, 'far')).toEqual([]);
  expect(piece(0, 'Hi', 2)).toEqual(['void', 'Hi']);
});
