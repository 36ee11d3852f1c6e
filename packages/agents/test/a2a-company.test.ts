import { mkdtempDisposableSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';
import { startFakeOpenAi } from '../../testing/src/fake-vendors.ts';
import { UMA } from '../../../test/support/company.ts';
import { openTroupe } from '../../../test/support/mode.ts';
import { piece, remote, serveRemote, status, task } from './a2a-remote.ts';

serveRemote();

test('a company delegates to a remote agent and gets its reply, and one that is lost is a named failure', async () => {
  remote.plays = {
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
        { id: 'surveyor', provider: 'a2a', url: remote.url },
      ],
    },
    { env: { OPENAI_API_KEY: 'k' } },
  );
  const say = async (to: string, content: string) => {
    await troupe.send('room', { author: UMA, to: [to], content });
    await troupe.idle();
  };
  await say('boss', 'Is plot 7 free?');
  expect(JSON.stringify(remote.calls[0]?.params.message?.parts)).toContain('look up plot 7');
  expect(JSON.stringify(vendor.requests.at(-1)?.body)).toContain('Plot 7 is free.');
  await say('surveyor', 'And plot 8?');
  expect(JSON.stringify(remote.calls[1]?.params.message?.parts)).toContain('And plot 8?');
  expect(JSON.stringify(remote.calls[1]?.params.message?.parts)).not.toContain('look up plot 7');
  const { events } = await troupe.events('room');
  expect(events.find(({ kind }) => kind === 'turn.failed')).toMatchObject({
    body: { code: 'provider_refused', message: expect.stringContaining('closed today') as string },
  });
});

test('a company asks a remote agent and hands over to it, and an impostor is a named failure', async () => {
  const key = { kty: 'OKP', crv: 'Ed25519', x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo' } as const;
  remote.plays = {
    SendStreamingMessage: ['Plot 7 is free.', 'I take over.'].map((words) => ({
      results: [status('COMPLETED', words)],
    })),
  };
  const called = (name: string, args: string) => ({ calls: [{ name, args }] });
  const answers = [
    called('ask', '{"to":"surveyor","question":"Is plot 7 free?"}'),
    called('handoff', '{"to":"surveyor","goal":"sell plot 7"}'),
    called('handoff', '{"to":"impostor","goal":"sell plot 8"}'),
  ];
  await using vendor = await startFakeOpenAi(() => answers.shift() ?? { text: 'Well.' });
  const boss = { provider: 'openai-compatible', baseUrl: vendor.url, tools: ['ask', 'handoff'] } as const;
  await using troupe = await openTroupe(
    {
      agents: [
        { id: 'boss', ...boss },
        { id: 'surveyor', provider: 'a2a', url: remote.url },
        { id: 'impostor', provider: 'a2a', url: remote.url, cardKeys: [key] },
      ],
    },
    { env: { OPENAI_API_KEY: 'k' } },
  );
  const { replies } = await troupe.ask('room', { content: 'Sell plot 7.', to: ['boss'] });
  expect(replies.at(-1)).toMatchObject({ author: { id: 'surveyor' }, body: { content: 'I take over.' } });
  expect(JSON.stringify(remote.calls[0]?.params.message?.parts)).toContain('Is plot 7 free?');
  expect(JSON.stringify(remote.calls[1]?.params.message?.parts)).toContain('sell plot 7');
  const { outcome, failures } = await troupe.ask('other', { content: 'Sell plot 8.', to: ['boss'] });
  expect(outcome).toBe('failed');
  expect(failures).toMatchObject([{ agent: 'impostor', code: 'provider_unverified' }]);
});

test('a turn that a closed process had begun joins its task in the next one', async () => {
  using folder = mkdtempDisposableSync(path.join(tmpdir(), 'troupe-'));
  const open = () =>
    openTroupe(
      { agents: [{ id: 'surveyor', provider: 'a2a', url: remote.url }] },
      { data: path.join(folder.path, 'data') },
    );
  remote.plays = {
    SendStreamingMessage: [{ results: [piece('Plot 7 ', false)], end: 'open' }],
    GetTask: [{ results: [task('COMPLETED', 'Plot 7 is free.')] }],
  };
  const first = await open();
  const heard = Promise.withResolvers<void>();
  first.watch((note) => note.type === 'text' && heard.resolve());
  await first.send('room', { author: UMA, to: ['surveyor'], content: 'Is plot 7 free?' });
  await heard.promise;
  await first[Symbol.asyncDispose]();
  await using second = await open();
  await second.idle();
  const { events } = await second.events('room');
  expect(events.findLast(({ kind }) => kind === 'message')?.body).toMatchObject({
    content: 'Plot 7 is free.',
  });
  expect(remote.calls.map(({ method }) => method)).toEqual(['SendStreamingMessage', 'GetTask']);
});

test('tools and sampling of a remote agent are refused at the start', async () => {
  const opened = (more: object) =>
    openTroupe({ agents: [{ id: 'surveyor', provider: 'a2a', url: remote.url, ...more }] });
  await expect(opened({ tools: ['handoff'] })).rejects.toMatchObject({
    code: 'config_invalid',
    message: expect.stringContaining('a remote agent calls no tools of this company') as string,
  });
  await expect(opened({ temperature: 1 })).rejects.toThrow(/a2a has no such setting/);
  await expect(opened({ apiKeyEnv: 'NO_TOKEN' })).rejects.toThrow(/NO_TOKEN/);
});
