import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import * as z from 'zod';
import { createTroupe, defineTool, type TroupeOptions } from '../../src/index.ts';
import { ANA, keepLines } from './stage.ts';

const ROOT = path.dirname(path.dirname(import.meta.dirname));
const SCRIPT = { rules: [{ reply: 'Blue.' }] };
const AGENTS = [{ id: 'ada', provider: 'scripted', model: 'test', script: SCRIPT }] as const;
const ANY = { port: 0 };

const open = (options: TroupeOptions) => createTroupe({ agents: AGENTS }, { logger: 'silent', ...options });

async function read(url: string | null, at: string, headers: Record<string, string> = {}) {
  const answer = await fetch(`${url}${at}`, { headers });
  return { status: answer.status, text: await answer.text() };
}

test('a troupe in code serves health, readiness and its metrics, and nothing else', async () => {
  await using troupe = await open({ status: ANY });
  expect(troupe.statusUrl).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
  await troupe.ask('c', 'Which colour?');
  expect(await read(troupe.statusUrl, '/healthz')).toEqual({ status: 200, text: '{"status":"ok"}' });
  expect(JSON.parse((await read(troupe.statusUrl, '/readyz')).text)).toEqual({
    status: 'ok',
    store: 'ok',
    queue: 'ok',
  });
  const { text } = await read(troupe.statusUrl, '/metrics');
  expect(text).toMatch(/^troupe_turns_total\{tenant="default",outcome="done"\} 1$/m);
  expect(text).toMatch(/^troupe_service_up\{service="store"\} 1$/m);
  expect((await read(troupe.statusUrl, '/api/agents')).status).toBe(404);
});

test('the status port says that the process is stopping until its last turn has stopped, then closes', async () => {
  const [called, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const wait = defineTool({
    name: 'wait',
    description: 'waits',
    schema: z.object({}),
    async run() {
      called.resolve();
      await released.promise;
      return 'done';
    },
  });
  const script = { rules: [{ calls: [{ name: 'wait', args: {} }] }] };
  const agents = [{ id: 'ada', provider: 'scripted', model: 'test', script, tools: ['wait'] }] as const;
  const troupe = await createTroupe({ agents, tools: [wait] }, { status: ANY, logger: 'silent' });
  const { statusUrl } = troupe;
  await troupe.send('c', { author: ANA, to: ['ada'], content: 'Wait.' });
  await called.promise;
  const closed = troupe.close();
  const { status, text } = await read(statusUrl, '/readyz');
  expect([status, JSON.parse(text)]).toMatchObject([503, { status: 'stopping' }]);
  released.resolve();
  await closed;
  await expect(fetch(`${statusUrl}/healthz`)).rejects.toThrow('fetch failed');
});

test('an address that other machines reach needs a token, which readers of metrics send', async () => {
  const status = { port: 0, host: '0.0.0.0' };
  await expect(open({ status, env: {} })).rejects.toMatchObject({ code: 'config_invalid' });
  await using troupe = await open({ status, env: { TROUPE_TOKEN: 'let-me-in' } });
  const url = troupe.statusUrl?.replace('0.0.0.0', '127.0.0.1') ?? null;
  expect((await read(url, '/healthz')).status).toBe(200);
  expect((await read(url, '/metrics')).status).toBe(401);
  const authorization = 'Bearer let-me-in';
  expect(await read(url, '/metrics', { authorization })).toMatchObject({
    status: 200,
    text: expect.stringContaining('troupe_build_info'),
  });
});

test('a port that is taken leaves the status to the next one, and without the option there is none', async () => {
  await using first = await open({ status: ANY });
  const port = Number(new URL(first.statusUrl ?? '').port);
  await using second = await open({ status: { port } });
  expect(Number(new URL(second.statusUrl ?? '').port)).toBeGreaterThan(port);
  await using third = await open({});
  expect(third.statusUrl).toBeNull();
  await expect(open({ status: { port: 70_000 } })).rejects.toMatchObject({ code: 'config_invalid' });
});

test('metrics of the application get the counts, and /metrics is not there', async () => {
  const counted: string[] = [];
  const metrics = { count: (name: string) => void counted.push(name), time: () => {}, change: () => {} };
  await using troupe = await open({ status: ANY, metrics });
  await troupe.ask('c', 'Which colour?');
  expect(counted).toContain('turns');
  expect((await read(troupe.statusUrl, '/metrics')).status).toBe(404);
  expect((await read(troupe.statusUrl, '/readyz')).status).toBe(200);
});

/** Prints what a program with these options writes to stderr while it takes a turn. */
async function linesOf(options: object, env: Record<string, string> = {}): Promise<unknown[]> {
  const program = `
    const { createTroupe } = await import('./src/index.ts');
    const agents = ${JSON.stringify(AGENTS)};
    await using troupe = await createTroupe({ agents }, ${JSON.stringify(options)});
    await troupe.ask('c', 'Which colour?');`;
  const args = ['--input-type=module', '--eval', program];
  const given = { ...process.env, TROUPE_LOG: '', ...env };
  const { stderr } = await promisify(execFile)(process.execPath, args, { cwd: ROOT, env: given });
  return stderr
    .split('\n')
    .filter(Boolean)
    .map((line) => (JSON.parse(line) as { code: string }).code);
}

test('with a status port lines are written to stderr, at the level of the option or of TROUPE_LOG', async () => {
  expect(await linesOf({ status: ANY })).toEqual(['turn_done']);
  expect(await linesOf({ status: ANY }, { TROUPE_LOG: 'debug' })).toEqual(['turn_started', 'turn_done']);
  expect(await linesOf({ status: ANY, logger: 'silent' }, { TROUPE_LOG: 'debug' })).toEqual([]);
  expect(await linesOf({ logger: 'debug' })).toEqual(['turn_started', 'turn_done']);
  expect(await linesOf({})).toEqual([]);
});

test('a level that does not exist is refused, and a logger of the application gets the lines instead', async () => {
  const wrong = { logger: 'loud' } as unknown as TroupeOptions;
  await expect(open(wrong)).rejects.toMatchObject({ code: 'config_invalid' });
  await expect(
    createTroupe({ agents: AGENTS }, { status: ANY, env: { TROUPE_LOG: 'loud' } }),
  ).rejects.toThrow(/TROUPE_LOG must be one of/);
  const { logger, lines } = keepLines('info');
  await using troupe = await open({ status: ANY, logger });
  await troupe.ask('c', 'Which colour?');
  expect(lines.map(({ code }) => code)).toEqual(['turn_done']);
});
