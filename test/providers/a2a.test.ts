import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { createA2a } from '../../src/providers/a2a/a2a.ts';
import type { ModelEvent, ModelRequest } from '../../src/providers/provider.ts';
import { collectEvents, sampleRequest, textOf } from '../../src/testing/provider-scene.ts';
import { startFakeOpenAi } from '../../src/testing/fake-vendors.ts';
import { UMA } from '../support/company.ts';
import { openTroupe } from '../support/mode.ts';
import { user } from './sent.ts';

interface Call {
  method: string;
  params: {
    id?: string;
    message?: { messageId: string; contextId?: string; taskId?: string; parts: unknown };
  };
}
/** The results of a stream. `cut`: the connection is lost after them. `open`: it stays open. */
interface Play {
  results?: object[];
  error?: { code: number; message: string };
  end?: 'cut' | 'open';
}

let url = '';
let calls: Call[] = [];
let headers: IncomingMessage['headers'] = {};
let plays: Record<string, Play[]> = {};
let foreign: string | null = null;
let arrived = Promise.withResolvers<void>();

const server = createServer((request, response) => void serve(request, response));
beforeAll(async () => {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});
beforeEach(() => {
  calls = [];
  plays = {};
  foreign = null;
  arrived = Promise.withResolvers();
});

async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
  headers = request.headers;
  if (request.url === '/.well-known/agent-card.json') {
    const at = { url: `${foreign ?? url}/rpc`, protocolBinding: 'JSONRPC', protocolVersion: '1.0' };
    response.end(JSON.stringify({ supportedInterfaces: [at], capabilities: { streaming: true } }));
    return;
  }
  const call = JSON.parse(await text(request)) as Call;
  calls.push(call);
  if (call.method === 'CancelTask') arrived.resolve();
  const { results = [], error, end } = plays[call.method]?.shift() ?? {};
  const answer = (part: object) => JSON.stringify({ jsonrpc: '2.0', id: 1, ...part });
  if (error || !call.method.startsWith('S')) {
    response.setHeader('content-type', 'application/json');
    response.end(answer(error ? { error } : { result: results[0] }));
    return;
  }
  response.setHeader('content-type', 'text/event-stream');
  for (const result of results) response.write(`data: ${answer({ result })}\n\n`);
  if (end === 'open') return;
  if (end === 'cut') response.write(':\n', () => response.destroy());
  else response.end();
}

const ids = { taskId: 't1', contextId: 'c1' };
const piece = (words: string, append = true) => ({
  artifactUpdate: { ...ids, artifact: { artifactId: 'a', parts: [{ text: words }] }, append },
});
const status = (state: string, words?: string) => ({
  statusUpdate: {
    ...ids,
    status: {
      state: `TASK_STATE_${state}`,
      ...(words !== undefined && { message: { parts: [{ text: words }] } }),
    },
  },
});
const task = (state: string, words: string) => ({
  id: 't1',
  contextId: 'c1',
  status: { state: `TASK_STATE_${state}` },
  artifacts: [{ artifactId: 'a', parts: [{ text: words }] }],
});
const START: Partial<ModelRequest> = { session: { kind: 'start' } };
const ask = (over: Partial<ModelRequest> = START) =>
  collectEvents(createA2a({ url, apiKey: 'secret-token-1' }), sampleRequest(over));
const methods = () => calls.map(({ method }) => method);
const failure = (events: readonly ModelEvent[]) => {
  const last = events.at(-1);
  return last?.type === 'failed' ? last.error : last;
};

test('pieces of an artifact are the growing reply, and working states are progress', async () => {
  plays = {
    SendStreamingMessage: [
      { results: [status('WORKING', 'I look.'), piece('Hel', false), piece('lo'), status('COMPLETED')] },
    ],
  };
  const events = await ask();
  expect(events.filter(({ type }) => type !== 'done')).toEqual([
    { type: 'start' },
    { type: 'session', change: 'started', id: 'c1' },
    { type: 'thinking', delta: 'I look.\n' },
    { type: 'text', delta: 'Hel' },
    { type: 'text', delta: 'lo' },
  ]);
  expect(events.at(-1)).toMatchObject({ stop: 'end', session: { id: 'c1', checkpoint: 'task:' } });
  expect(headers).toMatchObject({ authorization: 'Bearer secret-token-1', 'a2a-version': '1.0' });
});

test('a plain message is the reply', async () => {
  plays = {
    SendStreamingMessage: [{ results: [{ message: { parts: [{ text: 'Hi' }, { data: { a: 1 } }] } }] }],
  };
  expect(textOf(await ask())).toBe('Hi{"a":1}');
});

test('a question of the remote agent is the reply, and the next message goes to the same task', async () => {
  plays = {
    SendStreamingMessage: [
      { results: [status('INPUT_REQUIRED', 'Which one?')] },
      { results: [status('COMPLETED', 'Done.')] },
    ],
    GetTask: [{ results: [task('INPUT_REQUIRED', '')] }],
  };
  const first = await ask();
  expect(textOf(first)).toBe('Which one?');
  const done = first.at(-1);
  if (done?.type !== 'done' || !done.session) throw new Error('no mark');
  await ask({ messages: [user('the red one')], session: { kind: 'resume', mark: done.session } });
  expect(methods()).toEqual(['SendStreamingMessage', 'GetTask', 'SendStreamingMessage']);
  expect(calls[2]?.params.message).toMatchObject({
    ...ids,
    role: 'ROLE_USER',
    parts: [{ text: 'the red one' }],
  });
});

test.each([
  ['FAILED', 'provider_failed'],
  ['REJECTED', 'provider_refused'],
  ['CANCELED', 'provider_refused'],
  ['AUTH_REQUIRED', 'provider_auth'],
])('a task that is %s is the failure %s', async (state, code) => {
  plays = { SendStreamingMessage: [{ results: [status(state, 'because')] }] };
  const error = failure(await ask());
  expect(error).toMatchObject({ code, message: expect.stringContaining('because') as string });
});

test('a stream that is cut is joined again, and no word is doubled', async () => {
  plays = {
    SendStreamingMessage: [{ results: [piece('one ', false)], end: 'cut' }],
    GetTask: [{ results: [task('WORKING', 'one two ')] }],
    SubscribeToTask: [
      { results: [{ task: task('WORKING', 'one two ') }, piece('three'), status('COMPLETED')] },
    ],
  };
  expect(textOf(await ask())).toBe('one two three');
  expect(methods()).toEqual(['SendStreamingMessage', 'GetTask', 'SubscribeToTask']);
});

test('another try of the same step joins the task and sends nothing twice', async () => {
  const lost = { code: -32_603, message: 'away' };
  plays = {
    SendStreamingMessage: [{ results: [piece('one', false)], end: 'cut' }],
    GetTask: [{ error: lost }, { results: [task('COMPLETED', 'one two')] }],
  };
  const provider = createA2a({ url });
  expect(failure(await collectEvents(provider, sampleRequest(START)))).toMatchObject({
    code: 'provider_failed',
  });
  expect(textOf(await collectEvents(provider, sampleRequest(START)))).toBe('one two');
  expect(methods()).toEqual(['SendStreamingMessage', 'GetTask', 'GetTask']);
});

test('after a restart the message has the same id, and after a failed task another one', async () => {
  plays = { SendStreamingMessage: [0, 1, 2].map(() => ({ results: [status('FAILED')] })) };
  const provider = createA2a({ url });
  await collectEvents(provider, sampleRequest(START));
  await collectEvents(provider, sampleRequest(START));
  await collectEvents(createA2a({ url }), sampleRequest(START));
  const [first, again, restarted] = calls.map(({ params }) => params.message?.messageId);
  expect(again).not.toBe(first);
  expect(restarted).toBe(first);
});

test('a task that the remote agent has lost is a lost session', async () => {
  plays = { GetTask: [{ error: { code: -32_001, message: 'no such task' } }] };
  const mark = { id: 'c1', checkpoint: 'task:t1' };
  expect(failure(await ask({ session: { kind: 'resume', mark } }))).toMatchObject({
    code: 'provider_session_lost',
  });
});

test('an abort cancels the task', async () => {
  plays = { SendStreamingMessage: [{ results: [piece('one', false)], end: 'open' }], CancelTask: [{}] };
  const abort = new AbortController();
  const events = await collectEvents(createA2a({ url }), sampleRequest(START), {
    signal: abort.signal,
    onEvent: ({ type }) => type === 'text' && abort.abort(),
  });
  expect(events.at(-1)).toEqual({ type: 'aborted' });
  await arrived.promise;
  expect(calls.at(-1)).toMatchObject({ method: 'CancelTask', params: { id: 't1' } });
});

test('a card that names another origin gets neither key nor prompt', async () => {
  foreign = 'http://127.0.0.2:9';
  expect(failure(await ask())).toMatchObject({ code: 'provider_redirected' });
  expect(calls).toEqual([]);
});

test('a remote agent that is gone is unreachable', async () => {
  const events = await collectEvents(createA2a({ url: 'http://127.0.0.1:1' }), sampleRequest(START));
  expect(failure(events)).toMatchObject({ code: 'provider_unreachable' });
});

test('a company delegates to a remote agent and gets its reply, and one that is lost is a named failure', async () => {
  plays = {
    SendStreamingMessage: [
      { results: [status('WORKING', 'I look.'), piece('Plot 7 is free.', false), status('COMPLETED')] },
      { results: [status('REJECTED', 'closed today')] },
    ],
  };
  const delegated = { calls: [{ name: 'delegate', args: '{"to":"surveyor","task":"look up plot 7"}' }] };
  const answers = [delegated, { text: 'I have asked.' }];
  await using vendor = await startFakeOpenAi(() => answers.shift() ?? { text: 'Plot 7 it is.' });
  const boss = { provider: 'openai-compatible', baseUrl: vendor.url, tools: ['delegate'] } as const;
  await using troupe = await openTroupe(
    {
      agents: [
        { id: 'boss', ...boss },
        { id: 'surveyor', provider: 'a2a', url },
      ],
    },
    { env: { OPENAI_API_KEY: 'k' } },
  );
  const say = async (to: string, content: string) => {
    await troupe.send('room', { author: UMA, to: [to], content });
    await troupe.idle();
  };
  await say('boss', 'Is plot 7 free?');
  expect(JSON.stringify(calls[0]?.params.message?.parts)).toContain('look up plot 7');
  expect(JSON.stringify(vendor.requests.at(-1)?.body)).toContain('Plot 7 is free.');
  await say('surveyor', 'And plot 8?');
  expect(JSON.stringify(calls[1]?.params.message?.parts)).toContain('And plot 8?');
  expect(JSON.stringify(calls[1]?.params.message?.parts)).not.toContain('look up plot 7');
  const { events } = await troupe.events('room');
  expect(events.find(({ kind }) => kind === 'turn.failed')).toMatchObject({
    body: { code: 'provider_refused', message: expect.stringContaining('closed today') as string },
  });
});

test('tools and sampling of a remote agent are refused at the start', async () => {
  const opened = (more: object) =>
    openTroupe({ agents: [{ id: 'surveyor', provider: 'a2a', url, ...more }] });
  await expect(opened({ tools: ['handoff'] })).rejects.toMatchObject({
    code: 'config_invalid',
    message: expect.stringContaining('a remote agent calls no tools of this company') as string,
  });
  await expect(opened({ temperature: 1 })).rejects.toThrow(/a2a has no such setting/);
  await expect(opened({ apiKeyEnv: 'NO_TOKEN' })).rejects.toThrow(/NO_TOKEN/);
});
