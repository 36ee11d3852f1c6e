import { expect, test } from 'vitest';
import { keyOfMine, openStage, refusalOf } from './stage.ts';
import { say } from './ui-chat.ts';

const deep = JSON.parse(`${'['.repeat(500)}${']'.repeat(500)}`) as unknown;

test.each([
  ['no messages', { messages: [] }],
  ['no list of messages', { messages: 'x' }],
  ['a message without parts', { messages: [{ id: 'm1', role: 'user' }] }],
  ['a message without an id', { messages: [{ role: 'user', parts: [{ type: 'text', text: 'x' }] }] }],
  ['no words', say([{ type: 'text', text: '' }])],
  ['words of the system', say([{ type: 'text', text: 'x' }], { role: 'system' })],
  ['an answer without decisions', say([{ type: 'text', text: 'x' }], { role: 'assistant' })],
  ['a part without a type', say([{ text: 'x' }])],
  ['deep rubbish', say(deep)],
  ['many messages', { messages: Array.from({ length: 10_001 }, () => 0) }],
  ['an answer to nothing', say([{ type: 'data-answer', data: 'x' }])],
  ['a file that is not base64', say([{ type: 'file', mediaType: 'text/plain', url: 'data:text/plain,x' }])],
  ['a file that is no base64', say([{ type: 'file', mediaType: 'text/plain', url: 'data:;base64,?' }])],
  ['an agent that does not exist', { ...say([{ type: 'text', text: 'x' }]), to: ['nobody'] }],
])('%s is refused in words', async (_, body) => {
  await using stage = await openStage(['bo']);
  expect(await refusalOf(`${stage.url}/api/conversations/c1/chat`, body)).toEqual([
    400,
    expect.stringMatching(/^(?:event_invalid|agent_unknown)$/),
  ]);
});

test('an id of the runtime is refused, and an id with other words conflicts', async () => {
  await using stage = await openStage(['bo']);
  const post = async (id: string, text: string) => {
    const response = await fetch(`${stage.url}/api/conversations/c1/chat`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(say([{ type: 'text', text }], { id })),
    });
    await response.text();
    return response.status;
  };
  expect([await post('c1:bo:1', 'x'), await post('m1', 'x'), await post('m1', 'y')]).toEqual([409, 200, 409]);
});

test('words over 1 MiB are refused, and old messages may be longer', async () => {
  await using stage = await openStage(['bo']);
  const post = async (...texts: string[]) => {
    const messages = texts.map((text, index) => ({
      id: `m${index}`,
      role: 'user',
      parts: [{ type: 'text', text }],
    }));
    const response = await fetch(`${stage.url}/api/conversations/c1/chat`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ messages }),
    });
    await response.text();
    return response.status;
  };
  const long = 'x'.repeat(1_100_000);
  expect([await post(long), await post(long, 'short')]).toEqual([413, 200]);
});

test.each([
  ['nothing/a-1', 404],
  ['a-1', 404],
  ['..%2f/a-1', 404],
  ['/', 404],
  ['c1/', 400],
  ['yours-1/a-1', 404],
])('a decision of %s is refused', async (id, status) => {
  await using stage = await openStage(['bo'], { isKeyed: true });
  const conversations = ['c1'];
  const { secret } = await stage.troupe.keys.create({ name: 'p', scopes: ['read', 'write'], conversations });
  const vik = { kind: 'user', id: 'vik', name: 'Vik' } as const;
  for (const conversation of ['c1', 'yours-1'])
    await stage.troupe.send(conversation, { author: vik, to: ['bo'], content: 'x' });
  await stage.troupe.idle();
  const part = { type: 'dynamic-tool', state: 'approval-responded', approval: { id, approved: true } };
  const response = await fetch(`${stage.url}/api/conversations/c1/chat`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${secret}` },
    body: JSON.stringify({ messages: [{ id: 'answer-1', role: 'assistant', parts: [part] }] }),
  });
  expect([response.status, await response.text()]).toEqual([status, expect.any(String)]);
});

test('the door is behind the keys: none is 401, a conversation that was not granted 404', async () => {
  await using stage = await openStage(['bo'], { isKeyed: true });
  const { url } = stage;
  const secret = await keyOfMine(stage);
  async function ask(conversation: string, key: string, path = ''): Promise<number> {
    const method = path === '' ? 'POST' : 'GET';
    const address = `${url}/api/conversations/${conversation}/chat${path.replace('.', '')}`;
    const response = await fetch(address, {
      method,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      ...(method === 'POST' && { body: JSON.stringify(say([{ type: 'text', text: 'x' }])) }),
    });
    await response.text();
    return response.status;
  }
  expect(await ask('mine-1', 'wrong')).toBe(401);
  for (const path of ['', '.', '/stream', '/x/stream'])
    expect([path, await ask('yours-1', secret, path)]).toEqual([path, 404]);
  expect(await ask('mine-1', secret, '/stream')).toBe(204);
  expect(await ask('mine-1', secret)).toBe(200);
  expect(await ask('mine-1', secret, '.')).toBe(200);
});
