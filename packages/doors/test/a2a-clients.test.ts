import { once } from 'node:events';
import { type IncomingMessage, request as httpRequest } from 'node:http';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openStage, type Stage } from './stage.ts';

/** The behaviour of other makers' clients, over plain HTTP, and the requirements of the protocol's test kit. */
let stage: Stage;
let key = '';

beforeAll(async () => {
  stage = await openStage(['bo', 'desk', 'billing', 'torn', 'json', 'asker'], {
    isKeyed: true,
    agents: {
      desk: { tools: ['handoff'] },
      asker: { tools: ['ask'] },
      json: { reply: { type: 'object', properties: { euros: { type: 'number' } } } },
    },
    answers: {
      desk: [{ text: 'One moment.', calls: [{ name: 'handoff', args: '{"to":"billing","goal":"refund"}' }] }],
      billing: [{ text: 'It is refunded, in three working days.', chunk: 5 }],
      torn: [{ text: 'Never said.', chunk: 3, breaks: { after: 2, how: 'cut' } }, 'Said.'],
      json: ['{"euros":12}'],
      asker: [{ calls: [{ name: 'ask', args: '{"question":"Which size?"}' }] }, 'L it is.'],
    },
  });
  key = (await stage.troupe.keys.create({ name: 'x', scopes: ['read', 'write'] })).secret;
});
afterAll(async () => stage[Symbol.asyncDispose]());

const HEADERS = { 'content-type': 'application/json', 'a2a-version': '1.0' };
const message = (text: string, messageId: string, more: object = {}) => ({
  message: { messageId, role: 'ROLE_USER', parts: [{ text }], ...more },
});

function ask(path: string, init: RequestInit = {}, as = key): Promise<Response> {
  const headers = { ...HEADERS, authorization: `Bearer ${as}`, ...(init.headers as object) };
  return fetch(`${stage.url}/api/a2a/${path}`, { ...init, headers });
}

async function rpc(agent: string, method: string, params: object) {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
  const answer = await ask(agent, { method: 'POST', body });
  return (await answer.json()) as { result?: { task: Task }; error?: { code: number } };
}
interface Task {
  id: string;
  contextId: string;
  status: { state: string };
}
interface Update {
  artifact: { artifactId: string; parts: { text?: string; data?: unknown }[] };
  append: boolean;
  lastChunk: boolean;
}

async function updatesOf(agent: string, text: string): Promise<Update[]> {
  const body = JSON.stringify(message(text, `stream-${agent}`));
  const answer = await ask(`${agent}/message:stream`, { method: 'POST', body });
  const frames = (await answer.text()).split('\n\n').filter((frame) => frame.startsWith('data: '));
  return frames.flatMap((frame) => {
    const { artifactUpdate } = JSON.parse(frame.slice('data: '.length)) as { artifactUpdate?: Update };
    return artifactUpdate ? [artifactUpdate] : [];
  });
}

/** Google's ADK keeps only the last update of each artifact, unchanged. */
const keptWhole = (updates: readonly Update[]) =>
  updates.filter(({ lastChunk }) => lastChunk).map(({ artifact }) => artifact.parts[0]?.text);

/** The SDKs join updates that append, and replace the text by others. */
function joined(updates: readonly Update[]): string[] {
  const texts = new Map<string, string>();
  for (const { artifact, append } of updates) {
    const before = append ? (texts.get(artifact.artifactId) ?? '') : '';
    texts.set(artifact.artifactId, before + (artifact.parts[0]?.text ?? ''));
  }
  return [...texts.values()].filter((text) => text !== '');
}

test.each([
  ['desk', ['One moment.', 'It is refunded, in three working days.']],
  ['bo', ['bo answers 1']],
  ['torn', ['Said.']],
])(
  'who keeps the last update of an artifact of %s, and who joins them all, has the whole replies and no empty one',
  async (agent, replies) => {
    const updates = await updatesOf(agent, 'Refund it.');
    expect(updates.length).toBeGreaterThan(replies.length);
    expect(keptWhole(updates)).toEqual(replies);
    expect(joined(updates)).toEqual(replies);
  },
);

test('a reply in JSON ends with its data', async () => {
  const updates = await updatesOf('json', 'How much?');
  expect(updates.at(-1)).toMatchObject({ artifact: { parts: [{ data: { euros: 12 } }] }, lastChunk: true });
});

test('who subscribes to a task that waits for an answer is told what comes of it, to the end', async () => {
  const { result } = await rpc('asker', 'SendMessage', message('A shirt.', 'waits'));
  const { id, status } = result!.task;
  expect(status.state).toBe('TASK_STATE_INPUT_REQUIRED');
  const stream = await ask(`asker/tasks/${id}:subscribe`, { method: 'POST' });
  await rpc('asker', 'SendMessage', message('L', 'size', { taskId: id }));
  const told = await stream.text();
  expect(told.indexOf('TASK_STATE_INPUT_REQUIRED')).toBeGreaterThan(-1);
  expect(told.indexOf('L it is.')).toBeGreaterThan(told.indexOf('TASK_STATE_INPUT_REQUIRED'));
  expect(told.trimEnd().split('\n').at(-1)).toContain('TASK_STATE_COMPLETED');
});

test.each([
  ['the names of the proto file', { task_id: 'ID', history_length: 1 }, { context_id: 'C', page_size: 1 }],
  ['null for absence', { id: 'ID', historyLength: null }, { contextId: 'C', pageToken: null, status: null }],
  ['numbers of states', { id: 'ID' }, { contextId: 'C', status: 3 }],
])('%s are read', async (_, get, list) => {
  const { result } = await rpc('bo', 'SendMessage', {
    ...message('Hello.', `proto-${_}`, { context_id: null, task_id: '', extensions: null, metadata: null }),
    configuration: null,
  });
  const { id, contextId } = result!.task;
  const fill = (params: object) =>
    JSON.parse(
      JSON.stringify(params)
        .replaceAll('"ID"', JSON.stringify(id))
        .replaceAll('"C"', JSON.stringify(contextId)),
    ) as object;
  expect(await rpc('bo', 'ListTaskPushNotificationConfigs', fill({ task_id: 'ID' }))).toMatchObject({
    result: { configs: [] },
  });
  expect(await rpc('bo', 'GetTask', { id, ...fill(get) })).toMatchObject({ result: { id } });
  expect(await rpc('bo', 'ListTasks', fill(list))).toMatchObject({ result: { totalSize: 1 } });
  const rest = await ask(`bo/tasks?context_id=${contextId}&page_size=1&include_artifacts=true`);
  expect(await rest.json()).toMatchObject({ pageSize: 1, totalSize: 1 });
});

test('names in data of the client stay as they are', async () => {
  const data = { user_id: 1, none: null, deep: [{ a_b: 2 }] };
  const { result } = await rpc('bo', 'SendMessage', message('', 'data', { parts: [{ data }] }));
  const { contextId } = result!.task;
  const { events } = await stage.troupe.events(contextId);
  expect((events[0]!.body as { content: string }).content).toBe(JSON.stringify(data));
});

test('the address of a card with a slash at its end is the same', async () => {
  for (const path of ['bo', 'bo/']) {
    const { result } = await rpc(path, 'SendMessage', message('Hello.', 'slash'));
    expect(result?.task.status.state).toBe('TASK_STATE_COMPLETED');
  }
  expect((await ask('bo/')).status).toBe(405);
});

test('an id of a message that a client uses again with other words begins another task, and a repeated message none', async () => {
  const tasks: (Task | undefined)[] = [];
  for (const text of ['First.', 'First.', 'Second.'])
    tasks.push((await rpc('bo', 'SendMessage', message(text, 'msg-1'))).result?.task);
  const [first, again, other] = tasks;
  expect(again?.id).toBe(first?.id);
  expect(other?.contextId).not.toBe(first?.contextId);
  // In a context, the repeated message is one message.
  const { contextId } = first!;
  const named = await rpc('bo', 'SendMessage', message('Third.', 'msg-1', { contextId }));
  expect(named.error?.code).toBe(-32_602);
});

test('a body of another type is refused as the protocol says, in both bindings', async () => {
  const init = { method: 'POST', headers: { 'content-type': 'text/plain' }, body: '{}' };
  const rest = await ask('bo/message:send', init);
  expect([rest.status, await rest.json()]).toMatchObject([
    415,
    { error: { code: 415, status: 'INVALID_ARGUMENT', details: [{ reason: 'CONTENT_TYPE_NOT_SUPPORTED' }] } },
  ]);
  const call = await ask('bo', init);
  expect([call.status, await call.json()]).toMatchObject([200, { error: { code: -32_005 } }]);
});

test.each(['GET', 'HEAD', 'PUT', 'DELETE'])(
  '%s of what cancels a task is refused, with what is allowed',
  async (method) => {
    const { result } = await rpc('bo', 'SendMessage', message('Hello.', 'to-cancel'));
    for (const id of [result?.task.id, 'c~1', 'nonsense']) {
      const answer = await ask(`bo/tasks/${id}:cancel`, { method });
      expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'POST']);
    }
    expect((await ask(`bo/tasks/${result?.task.id}`)).status).toBe(200);
  },
);

test('a card may be kept for a minute by who has a key, and is compared by its tag', async () => {
  const path = 'bo/.well-known/agent-card.json';
  const first = await ask(path);
  const etag = first.headers.get('etag') ?? '';
  expect([etag.slice(0, 3), first.headers.get('cache-control')]).toEqual(['W/"', 'private, max-age=60']);
  const again = await ask(path, { headers: { 'if-none-match': etag } });
  expect([again.status, await again.text()]).toEqual([304, '']);
  const other = await ask('desk/.well-known/agent-card.json', { headers: { 'if-none-match': etag } });
  expect(other.status).toBe(200);
});

test('with a public address cards name that, whatever the client calls this server', async () => {
  await using other = await openStage(['bo'], {
    isKeyed: true,
    app: { publicUrl: 'https://agents.example/inspector/' },
  });
  const { secret } = await other.troupe.keys.create({ name: 'x', scopes: ['read'] });
  for (const host of ['agents.example', 'troupe.internal:4600', 'evil.example', '127.0.0.1']) {
    const { status, body } = await cardAt(other.url, host, secret);
    const { supportedInterfaces, signatures } = JSON.parse(body) as {
      supportedInterfaces: { url: string }[];
      signatures: { protected: string }[];
    };
    expect(status).toBe(200);
    expect(supportedInterfaces.map(({ url }) => url)).toEqual(
      Array.from({ length: 2 }, () => 'https://agents.example/inspector/api/a2a/bo'),
    );
    const header = Buffer.from(signatures[0]!.protected, 'base64url').toString();
    expect(header).toContain('"https://agents.example/inspector/api/a2a/.well-known/jwks.json"');
  }
});

test('names that were allowed have cards, too', async () => {
  await using other = await openStage(['bo'], { isKeyed: true, app: { allowedHosts: ['agents.example'] } });
  const { secret } = await other.troupe.keys.create({ name: 'x', scopes: ['read'] });
  expect((await cardAt(other.url, 'agents.example:8443', secret)).body).toContain(
    'http://agents.example:8443/api/a2a/bo',
  );
});

test.each([
  'ftp://agents.example',
  'agents.example',
  'https://a:b@agents.example',
  'https://agents.example/?x',
  'https://x/#y',
  '',
])('the public address "%s" is refused when the app is made', async (publicUrl) => {
  await expect(openStage(['bo'], { app: { publicUrl } })).rejects.toMatchObject({ code: 'config_invalid' });
});

/** `fetch` would set the host itself. */
async function cardAt(url: string, host: string, secret: string) {
  const sent = httpRequest(`${url}/api/a2a/bo/.well-known/agent-card.json`, {
    headers: { host, authorization: `Bearer ${secret}` },
  });
  sent.end();
  const [answer] = (await once(sent, 'response')) as [IncomingMessage];
  let body = '';
  for await (const chunk of answer) body += String(chunk);
  return { status: answer.statusCode, body };
}
