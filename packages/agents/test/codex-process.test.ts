import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test, vi } from 'vitest';
import { createCodex, type CodexOptions } from '../src/codex/codex.ts';
import { PEERS_ENV } from '../src/programs.ts';
import { createProvider } from '../../../src/library/runtime/registry.ts';
import { ProviderSettings } from '../../../src/providers/settings.ts';
import { collectEvents, sampleRequest, textOf } from '../../testing/src/provider-conformance.ts';
import { createFakeClock } from '../../testing/src/fake-clock.ts';
import { untilHolds } from '../../../test/support/until-holds.ts';

const request = sampleRequest({ session: { kind: 'start' } });
const dirs: string[] = [];

afterEach(() => {
  vi.unstubAllEnvs();
  for (const dir of dirs.splice(0)) rmSync(dir, { recursive: true, force: true });
});

function temporary(): string {
  const dir = mkdtempSync(join(tmpdir(), 'troupe-codex-'));
  dirs.push(dir);
  return dir;
}

/** Installs a package in Codex's place with this script as its program; no program without a script. */
function install(script?: string, version = '0.169.0'): void {
  const peers = temporary();
  vi.stubEnv(PEERS_ENV, peers);
  if (script === undefined) return;
  const dir = join(peers, 'node_modules', '@openai', 'codex');
  mkdirSync(join(dir, 'bin'), { recursive: true });
  writeFileSync(
    join(dir, 'package.json'),
    JSON.stringify({ name: '@openai/codex', version, type: 'module' }),
  );
  writeFileSync(join(dir, 'bin', 'codex.js'), script);
}

function create(over: Partial<CodexOptions> = {}) {
  const settings = {
    home: temporary(),
    env: {},
    apiKey: 'k',
    builtinTools: [],
    sandbox: 'read-only' as const,
  };
  return createCodex({ ...settings, ...over });
}

const unusable = (message: RegExp) => ({
  type: 'failed',
  error: { code: 'provider_unusable', message: expect.stringMatching(message) as string },
});

test('a missing program is reported with the command that installs it', async () => {
  install();
  const events = await collectEvents(create(), request);
  expect(events.at(-1)).toMatchObject(unusable(/npm install @openai\/codex@/));
});

test('an outdated program is reported with its version', async () => {
  install('', '0.98.1');
  const events = await collectEvents(create(), request);
  expect(events.at(-1)).toMatchObject(unusable(/0\.98\.1 is installed/));
});

test('a program that ends at its start is reported with its output', async () => {
  install('console.error("no such switch"); process.exit(3);');
  const events = await collectEvents(create(), request);
  expect(events.at(-1)).toMatchObject(unusable(/0\.169\.0.*code 3.*no such switch/));
});

test('the children of a program that has ended cannot keep its output open', async () => {
  install(`
    import { spawn } from 'node:child_process';
    spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'inherit' });
    process.exit(3);
  `);
  const events = await collectEvents(create(), request);
  expect(events.at(-1)).toMatchObject(unusable(/code 3/));
});

test('a program that hangs at its start is killed and reported', async () => {
  install('setInterval(() => {}, 1000);');
  const events = await collectEvents(create({ startTimeoutMs: 200 }), request);
  expect(events.at(-1)).toMatchObject(unusable(/did not answer for 200 ms/));
});

test('a program that failed to start is started again for the next request', async () => {
  install('process.exit(3);');
  const provider = create();
  await collectEvents(provider, request);
  install(SERVER);
  const events = await collectEvents(provider, request);
  expect(textOf(events)).toBe('hi');
  await provider.close?.();
});

/** Answers like the real one, but ignores interrupts. Writes its pid to its home. */
const SERVER = `
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { writeFileSync } from 'node:fs';
if (process.env.LEAVES_A_CHILD) spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'inherit' }).unref();
writeFileSync(process.env.CODEX_HOME + '/pid', String(process.pid));
writeFileSync(process.env.CODEX_HOME + '/env', JSON.stringify(process.env));
const send = (message) => process.stdout.write(JSON.stringify(message) + '\\n');
const note = (method, params) => send({ method, params: { threadId: 't', turnId: 'u', ...params } });
createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method } = JSON.parse(line);
  if (method === 'initialize') send({ id, result: {} });
  if (method === 'thread/start') send({ id, result: { thread: { id: 't' } } });
  if (method !== 'turn/start') return;
  send({ id, result: { turn: { id: 'u' } } });
  note('turn/started', { turn: { id: 'u' } });
  note('item/agentMessage/delta', { itemId: 'm', delta: 'hi' });
  if (process.env.HANGS) return;
  if (process.env.BABBLES) return note('item/completed', { item: 7 });
  send({ id: 'q1', method: 'item/permissions/requestApproval', params: { threadId: 't' } });
}).on('close', () => process.exit());
createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, error } = JSON.parse(line);
  if (id === 'q1' && error) note('turn/completed', { turn: { id: 'u', status: 'completed', error: null } });
});
`;

function fileOf(home: string, name: string): string {
  const [dir = ''] = readdirSync(home);
  return readFileSync(join(home, dir, name), 'utf8');
}

const isRunning = (pid: number) => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

test('a child that outlives the program and holds its output is killed, so that closing ends', async () => {
  install(SERVER);
  const clock = createFakeClock();
  const home = temporary();
  const provider = create({ home, clock, env: { LEAVES_A_CHILD: 'yes' } });
  await collectEvents(provider, request);
  const pid = Number(fileOf(home, 'pid'));
  const closed = provider.close?.();
  await untilHolds(() => expect(isRunning(pid)).toBe(false));
  await clock.advance(2000);
  await closed;
});

test('an unknown request is refused and not left unanswered', async () => {
  install(SERVER);
  const provider = create();
  const events = await collectEvents(provider, request);
  expect(events.map(({ type }) => type)).toEqual(['start', 'session', 'text', 'done']);
  await provider.close?.();
});

test('an unknown message fails the turn', async () => {
  install(SERVER);
  const provider = create({ env: { BABBLES: 'yes' } });
  const events = await collectEvents(provider, request);
  expect(events.at(-1)).toMatchObject({
    error: { message: expect.stringContaining('item/completed') as string },
  });
  await provider.close?.();
});

test('the environment contains only the given variables', async () => {
  vi.stubEnv('CANARY_OF_TEST', 'canary');
  vi.stubEnv('OPENAI_API_KEY', 'canary');
  install(SERVER);
  const home = temporary();
  const settings = { provider: 'codex', env: ['GIVEN', 'NOT_SET'], apiKeyEnv: 'MY_KEY' };
  const provider = await createProvider(ProviderSettings.parse(settings), {
    env: { GIVEN: 'x', MY_KEY: 'k', OTHER: 'canary' },
    clock: createFakeClock(),
    readScript: () => null,
    home,
  });
  await collectEvents(provider, request);
  const seen = JSON.parse(fileOf(home, 'env')) as Record<string, string>;
  expect(Object.keys(seen).toSorted()).toEqual(['CODEX_HOME', 'GIVEN', 'HOME', 'PATH', 'TROUPE_CODEX_KEY']);
  expect(seen['HOME']).toContain(home);
  await provider.close?.();
});

test('an abort is reported at once, and a program that does not react is killed', async () => {
  install(SERVER);
  const clock = createFakeClock();
  const home = temporary();
  const provider = create({ home, clock, env: { HANGS: 'yes' } });
  const controller = new AbortController();
  // The program never reacts, and the clock stands still: the report waits for neither.
  const events = await collectEvents(provider, request, {
    signal: controller.signal,
    onEvent: ({ type }) => type === 'text' && controller.abort(),
  });
  expect(events.at(-1)?.type).toBe('aborted');
  const pid = Number(fileOf(home, 'pid'));
  expect(isRunning(pid)).toBe(true);
  await clock.advance(2000);
  await untilHolds(() => expect(isRunning(pid)).toBe(false));
  await provider.close?.();
});

test("without a key the CLI's own login is used", async () => {
  install(SERVER);
  const login = temporary();
  writeFileSync(join(login, 'auth.json'), '{"login":"mine"}');
  vi.stubEnv('CODEX_HOME', login);
  const home = temporary();
  const provider = createCodex({ home, env: {}, builtinTools: [], sandbox: 'read-only' });
  await collectEvents(provider, request);
  expect(fileOf(home, 'auth.json')).toBe('{"login":"mine"}');
  expect(fileOf(home, 'config.toml')).not.toContain('model_provider');
  await provider.close?.();
});
