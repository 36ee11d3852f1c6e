import { expect, test } from 'vitest';
import { clientOf, lines } from './ag-ui-client.ts';
import { openStage, refusalOf } from './stage.ts';

const said = { threadId: 't1', runId: 'r1', messages: [{ id: 'u1', role: 'user', content: 'x' }] };
const deep = JSON.parse(`${'['.repeat(500)}${']'.repeat(500)}`) as unknown;

test.each([
  ['no messages', { threadId: 't1', runId: 'r1' }],
  ['no thread', { ...said, threadId: undefined }],
  ['a thread that is no conversation', { ...said, threadId: 'a/b' }, '', '/api/ag-ui'],
  ['a role that is none', { ...said, messages: [{ id: 'u1', role: 'boss', content: 'x' }] }],
  ['no words', { ...said, messages: [{ id: 'u1', role: 'user', content: '' }] }],
  [
    'a number of an agent',
    { ...said, messages: [{ id: 'a1', role: 'assistant', content: 5 }, ...said.messages] },
  ],
  ['an object of a developer', { ...said, messages: [{ id: 'd1', role: 'developer', content: {} }] }],
  ['no content', { ...said, messages: [{ id: 'u1', role: 'user' }] }],
  ['a number', { ...said, messages: [{ id: 'u1', role: 'user', content: 5 }] }],
  ['deep rubbish', { ...said, messages: [{ id: 'u1', role: 'user', content: deep }] }],
  ['many messages', { ...said, messages: Array.from({ length: 10_001 }, () => 0) }],
  [
    'a sound from nowhere',
    {
      ...said,
      messages: [
        { id: 'u1', role: 'user', content: [{ type: 'audio', source: { type: 'file', value: 'f1' } }] },
      ],
    },
  ],
  ['a decision without a decision', { ...said, resume: [{ interruptId: 'a-1', status: 'resolved' }] }],
  ['a status that is none', { ...said, resume: [{ interruptId: 'a-1', status: 'maybe' }] }],
  ['a resume that is none', { ...said, resume: 'x' }],
  ['an agent that does not exist', said, '?to=nobody'],
  ['an agent that cannot exist', said, '?to=a%20b'],
])('%s is refused in words', async (_, body, query = '', path = '/api/conversations/c1/ag-ui') => {
  await using stage = await openStage(['bo']);
  expect(await refusalOf(`${stage.url}${path}${query}`, body)).toEqual([
    400,
    expect.stringMatching(/^(?:event_invalid|agent_unknown)$/),
  ]);
});

test('ids and messages of a client may be anything', async () => {
  await using stage = await openStage(['bo']);
  const client = clientOf(`${stage.url}/api/conversations/c1/ag-ui`);
  client.agent.setMessages([
    { id: '__proto__', role: 'assistant', content: 'I said.', toolCalls: [] },
    { id: 'constructor', role: 'tool', toolCallId: '__proto__', content: 'x' },
    { id: 'r', role: 'reasoning', content: 'hm' },
  ]);
  await client.say('_nano:id/1', 'Go.');
  await client.agent.runAgent();
  expect(lines(client.agent.messages)).toEqual([
    'reasoning hm',
    'user User: Go.',
    'assistant bo: bo answers 1',
  ]);
  expect((await stage.troupe.events('c1')).events[0]?.id).toBe('ag-ui-_nano-id-1');
  expect(stage.requests('bo')).toHaveLength(1);
});

test('the door is behind the keys: scopes, tenants, and conversations that are granted', async () => {
  await using stage = await openStage(['bo'], { isKeyed: true });
  const { troupe, url } = stage;
  const keyFor = async (more: object) =>
    (await troupe.keys.create({ name: 'phone', scopes: ['read', 'write'], ...more })).secret;
  const mine = await keyFor({ conversations: ['mine-*'] });
  const mute = await keyFor({ scopes: ['read'] });
  const deaf = await keyFor({ scopes: ['write'] });
  async function ask(key: string, conversation: string, messages: unknown[] = said.messages) {
    const paths = [`/api/conversations/${conversation}/ag-ui`, '/api/ag-ui'];
    const answers = await Promise.all(
      paths.map((path) =>
        fetch(`${url}${path}`, {
          method: 'POST',
          headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
          body: JSON.stringify({ ...said, threadId: conversation, messages }),
        }),
      ),
    );
    await Promise.all(answers.map((answer) => answer.text()));
    return answers.map(({ status }) => status);
  }
  expect(await ask('wrong', 'mine-1')).toEqual([401, 401]);
  expect(await ask(mine, 'yours-1')).toEqual([404, 404]);
  expect(await ask(mine, 'yours-1', [])).toEqual([404, 404]);
  expect(await ask(mute, 'mine-1')).toEqual([403, 403]);
  expect(await ask(deaf, 'mine-1', [])).toEqual([403, 403]);
  expect(await ask(mine, 'mine-1')).toEqual([200, 200]);
  expect(stage.requests('bo')).toHaveLength(1);
});
