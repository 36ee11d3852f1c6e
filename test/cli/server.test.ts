import { existsSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { makeCertificate } from '../services/certificate.ts';
import { workplace } from './harness.ts';

test('commands find the server that has the data open, or use its URL', async () => {
  using place = workplace();
  await using dev = await place.dev();
  expect(dev.data).toBe(path.join(place.dir, '.troupe'));
  const accepted = await place.call(['send', 'c1', 'Hello', '--json']);
  expect(Object.keys(accepted.json)).toEqual(['event']);
  const waited = await place.call([
    'send',
    'c1',
    'x',
    '--to',
    'worker',
    '--wait',
    '--json',
    '--url',
    dev.url,
  ]);
  expect(waited.json).toMatchObject({
    event: { to: ['worker'] },
    // The planner may answer the first message meanwhile.
    replies: expect.arrayContaining([expect.objectContaining({ body: { content: 'work 1' } })]) as unknown,
  });
  const env = { TROUPE_URL: dev.url };
  expect((await place.call(['ls', '--json'], { env })).json).toMatchObject({ conversations: [{ id: 'c1' }] });
  for (const args of [
    ['ls', 'c1'],
    ['context', 'c1', 'worker'],
    ['trace', 'c1:worker:1'],
    ['export', 'c1'],
  ]) {
    expect(await place.call(args)).toMatchObject({ code: 0, err: '' });
  }
  const input = '{"role":"user","content":"Hi"}\n{"role":"assistant","content":"Ho"}';
  const imported = await place.run(['import', '-', '--conversation', 'old', '--json'], { input });
  expect(imported.json).toMatchObject({ conversation: 'old', events: 2 });
  const refused = await place.call(['send', 'c1', 'x', '--to', 'workr', '--json']);
  expect([refused.code, refused.json]).toMatchObject([
    1,
    { error: { code: 'agent_unknown', data: { nearest: 'worker' } } },
  ]);
  const failed = await place.call(['send', 'c1', 'x', '--to', 'broken', '--wait']);
  expect(failed).toMatchObject({ code: 1, err: 'provider_auth: no such key\n' });
});

test('a second server on the same data is refused, and the error names the first', async () => {
  using place = workplace();
  await using dev = await place.dev();
  const { code, json } = await place.call(['dev', '--port', '0', '--json']);
  expect([code, json]).toMatchObject([1, { error: { code: 'data_busy', data: { url: dev.url } } }]);
});

test('a busy port is skipped, and the banner says so', async () => {
  using place = workplace();
  const squatter = createServer().listen(0, '127.0.0.1');
  await once(squatter, 'listening');
  const { port } = squatter.address() as AddressInfo;
  await using dev = await place.dev(['--port', `${port}`, '--data', ':memory:']);
  expect(dev.data).toBe(':memory:');
  expect(Number(new URL(dev.url).port)).toBeGreaterThan(port);
  expect((await fetch(`${dev.url}/healthz`)).status).toBe(200);
  squatter.close();
});

test('a public address is refused without a token, and protected with one', async () => {
  using place = workplace();
  const { code, err } = await place.call(['dev', '--host', '0.0.0.0', '--port', '0']);
  expect([code, err]).toMatchObject([1, expect.stringMatching(/^config_invalid: .*TROUPE_TOKEN/)]);
});

test('with a certificate the server speaks HTTPS, and half of one is refused', async () => {
  using place = workplace();
  const { cert, key } = makeCertificate();
  const [certFile, keyFile] = [path.join(place.dir, 'cert.pem'), path.join(place.dir, 'key.pem')];
  writeFileSync(certFile, cert);
  writeFileSync(keyFile, key);
  const half = await place.call(['dev', '--tls-cert', certFile]);
  expect([half.code, half.err]).toMatchObject([1, expect.stringMatching(/^config_invalid: .*--tls-key/)]);
  const missing = await place.call(['dev', '--tls-cert', certFile, '--tls-key', 'none.pem']);
  expect(missing.err).toMatch(/^config_invalid: cannot read none\.pem of --tls-key \(ENOENT\)/);
  await using dev = await place.dev(['--tls-cert', certFile, '--tls-key', keyFile]);
  expect(dev.url).toMatch(/^https:/);
  const env = { NODE_EXTRA_CA_CERTS: certFile };
  expect((await place.run(['ls', '--json'], { env })).json).toMatchObject({ conversations: [] });
});

test('Ctrl-C lets the step end, and the next process answers the rest', async () => {
  using place = workplace();
  const dev = await place.dev();
  const stream = await fetch(`${dev.url}/api/events?conversation=c1`);
  const sent = await place.call(['send', 'c1', 'x', '--to', 'slow', '--json']);
  await firstWords(stream);
  dev.child.kill('SIGINT');
  expect(await dev.exited).toBe(0);
  expect(dev.err()).toBe('finishing…\n');
  const next = await place.call(['send', 'c1', 'y', '--to', 'worker', '--json']);
  expect(next.code).toBe(0);
  const { out } = await place.call(['export', 'c1']);
  expect(sent.json).toMatchObject({ event: { seq: 1 } });
  expect(out.split('\n').filter((line) => line.includes('"content":"abcdefgh"'))).toHaveLength(1);
});

test('a second Ctrl-C ends the process at once', async () => {
  using place = workplace();
  const dev = await place.dev();
  const stream = await fetch(`${dev.url}/api/events?conversation=c1`);
  await place.call(['send', 'c1', 'x', '--to', 'slow']);
  await firstWords(stream);
  dev.child.kill('SIGINT');
  while (!dev.err().includes('finishing')) await once(dev.child.stderr as NodeJS.ReadableStream, 'data');
  dev.child.kill('SIGINT');
  expect(await dev.exited).toBe(130);
});

test('without an agents file a demo company runs, and later commands remember it', async () => {
  using place = workplace({ agents: null });
  const dev = await place.dev();
  const sent = await place.call(['send', 'hello', 'Plan a release', '--wait', '--json']);
  const replies = sent.json['replies'] as { author: { id: string } }[];
  expect(replies.map(({ author }) => author.id)).toEqual(['reviewer']);
  dev.child.kill('SIGTERM');
  expect(await dev.exited).toBe(0);
  const later = await place.call(['send', 'hello', 'And you?', '--to', 'coder']);
  expect(later.out).toMatch(/^Coder: On it/);
  using bare = workplace({ agents: null });
  const none = await bare.call(['send', 'c', 'x']);
  expect([none.code, none.err]).toMatchObject([
    1,
    expect.stringMatching(/^config_invalid: no agents file found/),
  ]);
  expect(existsSync(path.join(bare.dir, '.troupe'))).toBe(false);
});

async function firstWords(response: Response): Promise<void> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk as Uint8Array, { stream: true });
    if (text.includes('event: stream')) return;
  }
}

test('an agent that fails while its answer is awaited is named, and the wait ends', async () => {
  using place = workplace();
  await place.call(['send', 'c1', 'x', '--to', 'worker']);
  const database = new DatabaseSync(path.join(place.dir, '.troupe', 'troupe.db'));
  database.exec("UPDATE actors SET data = json_set(data, '$.snapshot', 'nonsense')");
  database.close();
  await using dev = await place.dev();
  const { code, json } = await place.call([
    'send',
    'c1',
    'y',
    '--to',
    'worker',
    '--wait',
    '--json',
    '--url',
    dev.url,
  ]);
  expect([code, json]).toMatchObject([1, { error: { code: 'actor_corrupt', data: { agent: 'worker' } } }]);
});
