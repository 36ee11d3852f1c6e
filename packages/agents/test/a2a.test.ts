import { generateKeyPairSync, sign } from 'node:crypto';
import { expect, test } from 'vitest';
import { canonicalJson } from '../../../src/events/json.ts';
import type { PromptMessage } from '../../../src/events/index.ts';
import { createA2a } from '../src/a2a/a2a.ts';
import type { CardKey } from '../src/a2a/client.ts';
import type { ModelEvent, ModelRequest } from '../../../src/providers/provider.ts';
import { collectEvents, sampleRequest, textOf } from '../../testing/src/provider-conformance.ts';
import { ids, piece, remote, serveRemote, status, task } from './a2a-remote.ts';
import { user } from '../../../test/providers/sent.ts';

serveRemote();

const START: Partial<ModelRequest> = { session: { kind: 'start' } };
const ask = (over: Partial<ModelRequest> = START) =>
  collectEvents(createA2a({ url: remote.url, apiKey: 'secret-token-1' }), sampleRequest(over));
const methods = () => remote.calls.map(({ method }) => method);
const failure = (events: readonly ModelEvent[]) => {
  const last = events.at(-1);
  return last?.type === 'failed' ? last.error : last;
};

test('pieces of an artifact are the growing reply, and working states are progress', async () => {
  remote.plays = {
    SendStreamingMessage: [
      { results: [status('WORKING', 'I look.'), piece('Hel', false), piece('lo'), status('COMPLETED')] },
    ],
  };
  const events = await ask();
  expect(events.filter(({ type }) => type !== 'done')).toEqual([
    { type: 'start' },
    { type: 'session', change: 'started', id: 'c1' },
    { type: 'begun', mark: '0:t1' },
    { type: 'thinking', delta: 'I look.\n' },
    { type: 'text', delta: 'Hel' },
    { type: 'text', delta: 'lo' },
  ]);
  expect(events.at(-1)).toMatchObject({ stop: 'end', session: { id: 'c1', checkpoint: 'task:' } });
  expect(remote.headers).toMatchObject({ authorization: 'Bearer secret-token-1', 'a2a-version': '1.0' });
});

test('a plain message is the reply', async () => {
  remote.plays = {
    SendStreamingMessage: [{ results: [{ message: { parts: [{ text: 'Hi' }, { data: { a: 1 } }] } }] }],
  };
  expect(textOf(await ask())).toBe('Hi{"a":1}');
});

/** .NET, Python and Rust write null for absent fields. */
test.each<[string, object[], string]>([
  [
    'nulls for what is absent',
    [
      {
        task: null,
        message: {
          messageId: 'm',
          parts: [{ text: 'Hi', data: null, raw: null, url: null, metadata: null }],
          contextId: null,
        },
        statusUpdate: null,
      },
    ],
    'Hi',
  ],
  ['a null among the parts', [{ message: { parts: [null, { text: 'Hi' }] } }], 'Hi'],
  [
    'a part that cannot be read',
    [{ message: { parts: [{ text: 5 }, 'x', { text: ' Hi' }] } }],
    '[a part that cannot be read][a part that cannot be read] Hi',
  ],
  ['nulls in data', [{ message: { parts: [{ data: { a: null, b: [null] } }] } }], '{"a":null,"b":[null]}'],
  [
    'a task with nulls and an artifact that is none',
    [
      {
        task: {
          id: 't1',
          contextId: null,
          artifacts: [null, 'x', { artifactId: 'a', name: null, parts: [{ text: 'Hi' }] }],
          history: null,
          status: { state: 'TASK_STATE_COMPLETED', message: null, timestamp: null },
        },
      },
    ],
    '[a part that cannot be read]\n\nHi',
  ],
  [
    'an update with nulls',
    [
      {
        artifactUpdate: {
          ...ids,
          artifact: { artifactId: 'a', parts: [{ text: 'Hi' }], extensions: null },
          append: null,
          lastChunk: null,
        },
      },
      { statusUpdate: { ...ids, status: { state: 'TASK_STATE_COMPLETED', message: null }, metadata: null } },
    ],
    'Hi',
  ],
])('an answer with %s is read part by part', async (_, results, said) => {
  remote.plays = { SendStreamingMessage: [{ results }] };
  const events = await ask();
  expect(textOf(events)).toBe(said);
  expect(events.at(-1)).toMatchObject({ type: 'done' });
});

test('a card with nulls and an interface that cannot be read is used', async () => {
  const at = { url: `${remote.url}/rpc`, protocolBinding: 'JSONRPC', protocolVersion: '1.0', tenant: null };
  remote.more = {
    supportedInterfaces: [null, { url: 'not a url', protocolBinding: 'GRPC' }, at],
    defaultInputModes: null,
    capabilities: { streaming: true, pushNotifications: null },
    provider: null,
  };
  remote.plays = { SendStreamingMessage: [{ results: [{ message: { parts: [{ text: 'Hi' }] } }] }] };
  expect(textOf(await ask())).toBe('Hi');
});

test('an error with nulls is told with its code', async () => {
  remote.plays = { SendStreamingMessage: [{ error: { code: -32_603, message: null, data: null } as never }] };
  expect(failure(await ask())).toMatchObject({
    message: 'the remote agent refused: it gives no reason (-32603)',
  });
});

test('a question of the remote agent is the reply, and the next message goes to the same task', async () => {
  remote.plays = {
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
  expect(remote.calls[2]?.params.message).toMatchObject({
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
  remote.plays = { SendStreamingMessage: [{ results: [status(state, 'because')] }] };
  const error = failure(await ask());
  expect(error).toMatchObject({ code, message: expect.stringContaining('because') as string });
});

test('a stream that is cut is joined again, and no word is doubled', async () => {
  remote.plays = {
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
  remote.plays = {
    SendStreamingMessage: [{ results: [piece('one', false)], end: 'cut' }],
    GetTask: [{ error: lost }, { results: [task('COMPLETED', 'one two')] }],
  };
  const provider = createA2a({ url: remote.url });
  expect(failure(await collectEvents(provider, sampleRequest(START)))).toMatchObject({
    code: 'provider_failed',
  });
  expect(textOf(await collectEvents(provider, sampleRequest(START)))).toBe('one two');
  expect(methods()).toEqual(['SendStreamingMessage', 'GetTask', 'GetTask']);
});

test('a process that takes the turn over joins the task, and begins another once that has failed', async () => {
  remote.plays = {
    SendStreamingMessage: [
      { results: [piece('one', false)], end: 'cut' },
      { results: [status('COMPLETED', 'anew')] },
    ],
    GetTask: [{ error: { code: -32_603, message: 'away' } }, { results: [task('FAILED', 'one')] }],
  };
  const begun: string[] = [];
  const tryAgain = async () => {
    const events = await ask({ ...START, ...(begun.length > 0 && { begun: begun.at(-1) }) } as typeof START);
    for (const event of events) if (event.type === 'begun') begun.push(event.mark);
    return events;
  };
  for (const _ of [1, 2]) expect(failure(await tryAgain())).toMatchObject({ code: 'provider_failed' });
  expect(begun).toEqual(['0:t1', '1:']);
  expect(textOf(await tryAgain())).toBe('anew');
  expect(methods()).toEqual(['SendStreamingMessage', 'GetTask', 'GetTask', 'SendStreamingMessage']);
  expect(remote.calls[3]?.params.message?.messageId).not.toBe(remote.calls[0]?.params.message?.messageId);
});

test('pauses between joins grow, and a word begins them anew', async () => {
  const going = { results: [task('WORKING', 'one')] };
  const cut = (results: object[] = []) => ({ results, end: 'cut' }) as const;
  remote.plays = {
    SendStreamingMessage: [cut([piece('one', false)])],
    GetTask: Array.from({ length: 9 }, () => going),
    SubscribeToTask: [cut(), cut(), cut([piece(' two')]), cut(), cut(), cut(), cut(), cut(), cut()],
  };
  const pauses: number[] = [];
  const sleep = async (ms: number) => void pauses.push(ms);
  const events = await collectEvents(createA2a({ url: remote.url, clock: { sleep } }), sampleRequest(START));
  expect(textOf(events)).toBe('one two');
  expect(events.at(-1)?.type).toBe('failed');
  expect(pauses).toEqual([250, 500, 1_000, 250, 500, 1_000, 2_000, 4_000]);
});

test('images are parts, unless the card takes none', async () => {
  const image = { ...user('look'), images: [{ hash: 'h1', mediaType: 'image/png' }] } as PromptMessage;
  const shown = { ...START, messages: [image], images: new Map([['h1', 'QUJD']]) };
  remote.plays = { SendStreamingMessage: [0, 1].map(() => ({ results: [status('COMPLETED')] })) };
  await ask(shown);
  remote.more = { defaultInputModes: ['text/plain'] };
  await ask(shown);
  expect(remote.calls.map(({ params }) => params.message?.parts)).toEqual([
    [{ text: 'look' }, { raw: 'QUJD', mediaType: 'image/png' }],
    [{ text: 'look' }, { text: '[the remote agent takes no image/png: an image is left out]' }],
  ]);
});

test('with keys, only an agent whose card one of them has signed is sent anything', async () => {
  const pairs = [0, 1].map(() => generateKeyPairSync('ec', { namedCurve: 'P-256' }));
  const keys = pairs.map(({ publicKey }) => publicKey.export({ format: 'jwk' }) as CardKey);
  const at = { url: `${remote.url}/rpc`, protocolBinding: 'JSONRPC', protocolVersion: '1.0' };
  const card = { supportedInterfaces: [at], capabilities: { streaming: true }, name: 'Clerk' };
  const header = Buffer.from('{"alg":"ES256","typ":"JOSE"}').toString('base64url');
  const payload = Buffer.from(canonicalJson(card)).toString('base64url');
  const signature = sign('sha256', Buffer.from(`${header}.${payload}`), {
    key: pairs[0]!.privateKey,
    dsaEncoding: 'ieee-p1363',
  }).toString('base64url');
  const signed = { name: 'Clerk', signatures: [{ protected: header, signature }] };
  const askWith = (cardKeys: CardKey[]) =>
    collectEvents(createA2a({ url: remote.url, cardKeys }), sampleRequest(START));
  for (const [card_, cardKeys] of [
    [{}, keys],
    [{ ...signed, name: 'Other' }, keys],
    [signed, [keys[1]!]],
  ] as const) {
    remote.more = card_;
    expect(failure(await askWith([...cardKeys]))).toMatchObject({ code: 'provider_unverified' });
  }
  expect(remote.calls).toEqual([]);
  remote.more = signed;
  remote.plays = { SendStreamingMessage: [{ results: [status('COMPLETED', 'Hi')] }] };
  expect(textOf(await askWith(keys))).toBe('Hi');
});

test('after a restart the message has the same id, and after a failed task another one', async () => {
  remote.plays = { SendStreamingMessage: [0, 1, 2].map(() => ({ results: [status('FAILED')] })) };
  const provider = createA2a({ url: remote.url });
  await collectEvents(provider, sampleRequest(START));
  await collectEvents(provider, sampleRequest(START));
  await collectEvents(createA2a({ url: remote.url }), sampleRequest(START));
  const [first, again, restarted] = remote.calls.map(({ params }) => params.message?.messageId);
  expect(again).not.toBe(first);
  expect(restarted).toBe(first);
});

test('a task that the remote agent has lost is a lost session', async () => {
  remote.plays = { GetTask: [{ error: { code: -32_001, message: 'no such task' } }] };
  const mark = { id: 'c1', checkpoint: 'task:t1' };
  expect(failure(await ask({ session: { kind: 'resume', mark } }))).toMatchObject({
    code: 'provider_session_lost',
  });
});

test('an abort cancels the task', async () => {
  remote.plays = {
    SendStreamingMessage: [{ results: [piece('one', false)], end: 'open' }],
    CancelTask: [{}],
  };
  const abort = new AbortController();
  const events = await collectEvents(createA2a({ url: remote.url }), sampleRequest(START), {
    signal: abort.signal,
    onEvent: ({ type }) => type === 'text' && abort.abort(),
  });
  expect(events.at(-1)).toEqual({ type: 'aborted' });
  await remote.cancelled.promise;
  expect(remote.calls.at(-1)).toMatchObject({ method: 'CancelTask', params: { id: 't1' } });
});

test('a card that names another origin gets neither key nor prompt', async () => {
  remote.foreign = 'http://127.0.0.2:9';
  expect(failure(await ask())).toMatchObject({ code: 'provider_redirected' });
  expect(remote.calls).toEqual([]);
});

test('a remote agent that is gone is unreachable', async () => {
  const events = await collectEvents(createA2a({ url: 'http://127.0.0.1:1' }), sampleRequest(START));
  expect(failure(events)).toMatchObject({ code: 'provider_unreachable' });
});
