import path from 'node:path';
import { expect, test } from 'vitest';
import { startFakeOpenAi } from '../../packages/testing/src/fake-vendors.ts';
import { workplace } from '../cli/harness.ts';
import { stdioStage } from '../tools/mcp-stage.ts';
import { createCanaries, filesIn, obedientVendor } from './canary-stage.ts';

const AT = '/api/conversations/c1/events';

test('the command line and its server write no secret anywhere, in success and in failure', async () => {
  const canaries = createCanaries();
  await using vendor = await startFakeOpenAi(obedientVendor);
  const files = { ...stdioStage().server(), env: ['SECRET'] };
  const bo = {
    id: 'bo',
    provider: 'openai-compatible',
    baseUrl: vendor.url,
    apiKeyEnv: 'VENDOR_KEY',
    tools: ['files/*'],
    contextWindow: 64_000,
  };
  using place = workplace({ agents: { agents: [bo], mcpServers: { files } } });
  const names = ['VENDOR_KEY', 'SECRET', 'TROUPE_TOKEN', 'TROUPE_NOSTR_PASSPHRASE', 'WEBHOOK_SECRET'];
  const env = Object.fromEntries(names.map((name) => [name, canaries.plant(name)]));
  /** In a process of its own, or, which costs a tenth, in this one, where no two run at once. */
  const run = async (args: string[], more: Record<string, string> = {}, how: 'run' | 'call' = 'run') => {
    const { code, out, err } = await place[how](args, { env: { ...env, ...more } });
    canaries.see(`troupe ${args.join(' ')}`, `${code}\n${out}\n${err}`);
    return { code, text: `${out}\n${err}` };
  };
  const mongodb = `mongodb://ana:${canaries.plant('MongoDB password')}@127.0.0.1:1/x?serverSelectionTimeoutMS=100`;
  const redis = `redis://:${canaries.plant('Redis password')}@127.0.0.1:1`;
  const key = canaries.plant('a key in the file', `sk-${'c4n4ry'.repeat(8)}`);
  const wrong = {
    ...bo,
    tools: [],
    apiKeyEnv: key,
    baseUrl: `https://u:${canaries.plant('a password in the file')}@host`,
  };
  place.write('wrong.json', { agents: [wrong] });
  place.write('literal.json', { agents: [{ ...bo, tools: [], apiKey: key }] });
  {
    const dev = await place.start(['dev', '--port', '0', '--log-level', 'debug'], env);
    const url = String(dev.ready['url']);
    for (const said of [
      'plain words',
      'do files__environment {}',
      'do files__refuse {}',
      'do files__die {}',
      'fail provider_auth',
      'fail raw',
    ])
      await run(['send', 'c1', said, '--to', 'bo', '--wait', '--json'], {}, 'call');
    const done = await run(['ls', 'c1', '--json'], {}, 'call');
    expect(done.text).not.toContain('token_required');
    await Promise.all([
      ...[
        ['export', 'c1'],
        ['trace', 'c1:bo:2'],
        ['context', 'c1', 'bo'],
        ['queues', '--json'],
      ].map((args) => run(args)),
      run(['send', 'c1', 'x'], { TROUPE_TOKEN: canaries.plant('wrong token') }),
      ...[mongodb, `${url}/nowhere`].map(async (bearer) => {
        const headers = { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' };
        const response = await fetch(`${url}${AT}`, { method: 'POST', body: '{"content":', headers });
        expect(response.status).toBe(401);
        canaries.see('a refusal', `${JSON.stringify([...response.headers])} ${await response.text()}`);
      }),
    ]);
    dev.child.kill('SIGTERM');
    expect(await dev.exited).toBe(0);
    canaries.see('what the server wrote', JSON.stringify(dev.lines) + dev.err());
    expect(dev.err()).toContain('"provider_auth"');
  }
  const services = { MONGODB_URL: mongodb, REDIS_URL: redis };
  const [refused, literal] = await Promise.all([
    run(['dev', 'wrong.json', '--json']),
    run(['doctor', 'literal.json', '--json']),
    run(['doctor', '--json'], services),
    run(['serve', '--log-level', 'debug'], services),
  ]);
  expect(refused.code).toBe(1);
  expect(refused.text).toContain('never the key itself');
  expect(refused.text).toContain('no place for a password');
  expect(literal.text).toContain('keys stay out of files');
  const data = path.join(place.dir, '.troupe');
  for (const [file, bytes] of filesIn(data))
    if (bytes.length > 0) canaries.see(path.relative(data, file), bytes);
  expect(canaries.leaks()).toEqual([]);
  expect(canaries.size().places).toBeGreaterThan(18);
});
