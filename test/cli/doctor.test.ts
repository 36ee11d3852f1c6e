import { Long } from 'mongodb';
import { startFakeMongo } from '../support/fake-mongo.ts';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { siteTest } from './distributed.ts';
import { AGENTS, workplace } from './harness.ts';

test('doctor reports no problem, and names keys without their values', async () => {
  const cloud = { id: 'cloud', provider: 'openai-compatible', model: 'm', apiKeyEnv: 'A_KEY' };
  using place = workplace({ agents: { agents: [...AGENTS.agents, cloud] } });
  const { code, json, out } = await place.call(['doctor', '--json'], { env: { A_KEY: 'sk-canary' } });
  expect(code).toBe(0);
  expect(json).toMatchObject({
    ok: true,
    checks: [
      { name: 'node', status: 'ok' },
      { name: 'agents', status: 'ok' },
      { name: 'key', status: 'ok', detail: 'A_KEY is set (@cloud)' },
      { name: 'data', status: 'ok' },
    ],
  });
  expect(out).not.toContain('sk-canary');
  expect((await place.call(['doctor'])).out).toMatch(/warning {2}key +A_KEY is not set/);
});

test('doctor lists every problem of an agents file and fails', async () => {
  using place = workplace({
    agents: {
      agents: [
        { id: 'a b', provider: 'x' },
        { ...AGENTS.agents[0], tools: 3 },
      ],
    },
  });
  const { code, out } = await place.call(['doctor']);
  expect(code).toBe(1);
  expect(out).toMatch(/^failed +agents .*problem/m);
  expect(out).toContain('agents[0].id: ');
  expect(out).toContain('agents[1].tools: ');
});

test('doctor names each instruction file that cannot be read', async () => {
  using place = workplace({ agents: { ...AGENTS, workspace: './' } });
  expect((await place.call(['doctor'])).out).toMatch(
    /^failed +workspace +workspace: .* has none of AGENTS\.md/m,
  );
  writeFileSync(path.join(place.dir, 'AGENTS.md'), Buffer.from([0xff]));
  const { code, out } = await place.call(['doctor']);
  expect(code).toBe(1);
  expect(out).toMatch(/^failed +workspace +workspace: AGENTS\.md is not UTF-8$/m);
  writeFileSync(path.join(place.dir, 'AGENTS.md'), 'Be brief.');
  expect((await place.call(['doctor'])).out).toMatch(/^ok +workspace /m);
});

test('doctor names each skill that cannot be read', async () => {
  using place = workplace({ agents: { ...AGENTS, skills: ['./skills'] } });
  expect((await place.call(['doctor'])).out).toMatch(/^failed +skills +skills: there is no directory /m);
  mkdirSync(path.join(place.dir, 'skills', 'plan'), { recursive: true });
  const file = path.join(place.dir, 'skills', 'plan', 'SKILL.md');
  writeFileSync(file, 'Do it.');
  const { code, out } = await place.call(['doctor']);
  expect(code).toBe(1);
  expect(out).toMatch(/^failed +skills +skills: .*plan: SKILL\.md does not begin with a frontmatter/m);
  writeFileSync(file, '---\nname: plan\ndescription: how to plan\n---\nDo it.');
  expect((await place.call(['doctor'])).out).toMatch(/^ok +skills /m);
});

test('doctor asks the tool servers for their tools, and says which cannot be used and why', async () => {
  const server = fileURLToPath(new URL('../support/odd-mcp-server.ts', import.meta.url));
  const list = '{"tools":[{"name":"look","inputSchema":{"type":"object"}}]}';
  const agents = [{ ...AGENTS.agents[0], tools: ['there/look', 'away/*'] }];
  const mcpServers = {
    there: { command: process.execPath, args: [server, 'sent', JSON.stringify({ 'tools/list': list })] },
    away: { command: 'no-such-command' },
    idle: { command: 'not-granted' },
  };
  using place = workplace({ agents: { ...AGENTS, agents, mcpServers } });
  const { code, out } = await place.call(['doctor']);
  expect(code).toBe(0);
  expect(out).toMatch(/^ok +tools +mcpServers\.there: 1 tools$/m);
  expect(out).toMatch(
    /^warning +tools +mcpServers\.away cannot be used: spawn no-such-command ENOENT\. Agents work without its tools/m,
  );
  expect(out).not.toContain('not-granted');
});

test('doctor names the process that has the data open', async () => {
  using place = workplace();
  await using dev = await place.dev();
  const { code, out } = await place.call(['doctor']);
  expect(code).toBe(0);
  expect(out).toContain(`serving ${dev.url}`);
  expect((await place.call(['ls', '--data', path.join(place.dir, '.troupe')])).code).toBe(0);
});

test('doctor lists every state of the machines with its legal events', async () => {
  using place = workplace({ agents: null });
  const { json } = await place.call(['doctor', '--machines', '--json']);
  const machines = json['machines'] as { id: string; states: { path: string; events: object[] }[] }[];
  expect(machines.map(({ id }) => id)).toEqual(['agent', 'availability', 'workflow']);
  const { out } = await place.call(['doctor', '--machines']);
  for (const { id, states } of machines) {
    expect(out).toContain(`${id}\n`);
    for (const state of states) expect(out).toContain(` ${state.path}`);
  }
  expect(machines.flatMap(({ states }) => states.map(({ path: at }) => at))).toContain('working.streaming');
});

siteTest('doctor checks the configured servers, and shows no password', async ({ place, env }) => {
  const { code, json } = await place.call(['doctor', '--json'], { env });
  expect(code).toBe(0);
  const checks = json['checks'] as { name: string; status: string; detail: string }[];
  expect(checks.slice(-2)).toMatchObject([
    // A server of the test's own is fit for tests.
    {
      name: 'mongodb',
      status: expect.stringMatching(/^(?:ok|warning)$/),
      detail: expect.stringMatching(/: \d+\.\d+/),
    },
    { name: 'redis', status: 'ok', detail: expect.stringContaining('noeviction') },
  ]);
});

test('doctor fails for silent servers, without their passwords', async () => {
  using place = workplace();
  const env = {
    MONGODB_URL: 'mongodb://ana:canary@127.0.0.1:1/x',
    REDIS_URL: 'redis://ana:canary@127.0.0.1:1',
  };
  const { code, out, err } = await place.call(['doctor'], { env });
  expect(code).toBe(1);
  expect(out).toMatch(/^failed +mongodb +MongoDB at 127\.0\.0\.1:1: no (?:server answers|answer in)/m);
  expect(out).not.toContain('opology');
  expect(out).toMatch(/^failed +redis +.*127\.0\.0\.1:1/m);
  expect(out + err).not.toContain('canary');
});

test.each([
  [
    'refuses TTL indexes, as FerretDB 1',
    'failed',
    'no TTL indexes (createIndexes: expireAfterSeconds is not implemented)',
    238,
  ],
  ['makes plain indexes of them', 'warning', 'TTL indexes without effect', null],
  ['has them, and no replica set', 'warning', 'no replica set', null],
  ['lets nobody write', 'failed', 'this user is not allowed to do that', 13],
])('doctor says of a server that %s what that means', async (name, status, words, code) => {
  using place = workplace();
  let made: object[] = [];
  await using server = await startFakeMongo((command, body) => {
    if (command === 'buildInfo') return { ok: 1, version: '7.0.42' };
    if (command === 'listIndexes') {
      if (made.length === 0)
        return { ok: 0, code: 26, codeName: 'NamespaceNotFound', errmsg: 'ns does not exist' };
      return { ok: 1, cursor: { id: Long.ZERO, ns: 'troupe.x', firstBatch: made } };
    }
    if (command === 'createIndexes' && code !== null)
      return { ok: 0, code, errmsg: 'createIndexes: expireAfterSeconds is not implemented' };
    if (command === 'createIndexes') {
      made = (body['indexes'] as { expireAfterSeconds?: number }[]).map(({ expireAfterSeconds, ...index }) =>
        name.startsWith('has') ? { ...index, expireAfterSeconds, v: 2 } : { ...index, v: 2 },
      );
      return { ok: 1 };
    }
    return ['drop', 'endSessions'].includes(command) ? { ok: 1 } : null;
  });
  const { out } = await place.call(['doctor'], { env: { MONGODB_URL: `${server.url}/troupe` } });
  const line = out.split('\n').find((each) => each.includes('mongodb')) ?? '';
  expect(line).toContain(words);
  expect(line.startsWith(status)).toBe(true);
  // The empty collection that was made is gone.
  if (code === null)
    expect(server.commands.filter((each) => ['createIndexes', 'drop'].includes(each))).toEqual([
      'createIndexes',
      'drop',
    ]);
});

siteTest('doctor reports that one of the two servers is missing', async ({ place, env }) => {
  const { code, out } = await place.call(['doctor'], { env: { REDIS_URL: env['REDIS_URL'] ?? '' } });
  expect([code, out]).toMatchObject([
    0,
    expect.stringMatching(/^warning +services +REDIS_URL is set and MONGODB_URL is not/m),
  ]);
});

test('doctor asks for no key of a server on this machine', async () => {
  const here = {
    id: 'here',
    provider: 'openai-compatible',
    model: 'm',
    baseUrl: 'http://127.0.0.1:11434/v1',
  };
  const away = { ...here, id: 'away', baseUrl: 'https://models.example/v1', apiKeyEnv: 'AWAY_KEY' };
  using place = workplace({ agents: { agents: [here, away] } });
  const { out } = await place.call(['doctor']);
  expect(out).toContain('AWAY_KEY is not set (@away)');
  expect(out).not.toContain('OPENAI_API_KEY');
});
