import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  ANTHROPIC,
  DISTRIBUTED,
  DISTRIBUTED_ON_POSTGRES,
  isFound,
  loadWith,
  OPENAI,
} from '../../src/base/optional-packages.ts';

const PACKAGES = [ANTHROPIC, OPENAI, DISTRIBUTED, DISTRIBUTED_ON_POSTGRES].flatMap(({ packages }) =>
  Object.entries(packages),
);
const ABSENT = new Set([
  ...PACKAGES.map(([name]) => name),
  '@troupe/agents',
  '@troupe/doors',
  '@troupe/importers',
]);

/** A copy of the sources whose `node_modules` has all packages but the optional ones. */
let dir = '';
let program: ChildProcess;
let ended: Promise<unknown[]>;

beforeAll(() => {
  dir = mkdtempSync(path.join(tmpdir(), 'troupe-lean-'));
  cpSync('src', path.join(dir, 'src'), { recursive: true });
  cpSync('package.json', path.join(dir, 'package.json'));
  mkdirSync(path.join(dir, 'node_modules'));
  for (const name of installed()) {
    const link = path.join(dir, 'node_modules', name);
    mkdirSync(path.dirname(link), { recursive: true });
    if (!ABSENT.has(name)) symlinkSync(path.resolve('node_modules', name), link);
  }
  program = startProgram();
  ended = once(program, 'exit');
});
afterAll(() => {
  program.kill('SIGKILL');
  rmSync(dir, { recursive: true, force: true });
});

function installed(): string[] {
  const names = readdirSync('node_modules').filter((name) => !name.startsWith('.'));
  return names.flatMap((name) =>
    name.startsWith('@') ? readdirSync(`node_modules/${name}`).map((each) => `${name}/${each}`) : [name],
  );
}

interface Answer {
  code: number;
  out: string;
  err: string;
}

/** Runs each command line that it is sent: to load the sources takes longer than all the commands. */
const PROGRAM = `
import { runCli } from './src/cli/run-cli.ts';
const said = { out: '', err: '' };
process.stdout.write = (text) => Boolean((said.out += text));
process.stderr.write = (text) => Boolean((said.err += text));
process.on('message', async ({ args, env }) => {
  Object.assign(said, { out: '', err: '' });
  Object.assign(process, { env, exitCode: undefined });
  process.send({ code: await runCli(args), ...said });
});
`;

function startProgram(): ChildProcess {
  writeFileSync(path.join(dir, 'program.js'), PROGRAM);
  const { PATH = '' } = process.env;
  return fork(path.join(dir, 'program.js'), { cwd: dir, env: { PATH }, execArgv: [] });
}

async function run(args: string[], agent: object, env: Record<string, string> = {}, more: object = {}) {
  writeFileSync(
    path.join(dir, 'agents.json'),
    JSON.stringify({ agents: [{ id: 'ada', model: 'm', ...agent }], ...more }),
  );
  const { PATH = '' } = process.env;
  program.send({ args, env: { PATH, ...env } });
  const answer = await Promise.race([new Promise((resolve) => program.once('message', resolve)), ended]);
  if (Array.isArray(answer)) throw new Error(`troupe ${args.join(' ')} ended its process with ${answer[0]}`);
  return answer as Answer;
}

test('without its SDK the anthropic provider is refused at the start, with the command that installs it', async () => {
  const args = ['send', 'c1', 'Hello', '--to', 'ada', '--wait', '--json', '--data', ':memory:'];
  const { code, err } = await run(args, { provider: 'anthropic' }, { ANTHROPIC_API_KEY: 'k' });
  expect(code).toBe(1);
  expect(JSON.parse(err.trim().split('\n').at(-1) ?? '')).toMatchObject({
    error: {
      code: 'package_missing',
      message:
        'the anthropic provider needs a package that is not installed: npm install @anthropic-ai/sdk@1',
      data: { packages: ['@anthropic-ai/sdk'] },
    },
  });
});

test('without the drivers the distributed mode is refused at the start, with the command that installs them', async () => {
  const urls = {
    MONGODB_URL: 'mongodb://127.0.0.1:1/t',
    REDIS_URL: 'redis://127.0.0.1:1',
    TROUPE_TOKEN: 't'.repeat(32),
  };
  for (const command of ['serve', 'worker']) {
    const { code, err } = await run(
      [command, 'agents.json'],
      { provider: 'scripted', script: { rules: [{ reply: 'Hi' }] } },
      urls,
    );
    expect(code).toBe(1);
    expect(err).toContain(
      'the distributed mode needs packages that are not installed: npm install mongodb@7 bullmq@6 ioredis@6',
    );
  }
});

test('on PostgreSQL alone its package is all that is named', async () => {
  const env = { POSTGRES_URL: 'postgres://127.0.0.1:1/t', TROUPE_TOKEN: 't'.repeat(32) };
  const { code, err } = await run(
    ['worker', 'agents.json'],
    { provider: 'scripted', script: { rules: [{ reply: 'Hi' }] } },
    env,
  );
  expect(code).toBe(1);
  expect(err).toContain(
    'the distributed mode needs a package that is not installed: npm install @troupe/postgres',
  );
});

test.each(['mcp', 'acp'])(
  'without @troupe/doors troupe %s is refused at the start, with the command that installs it',
  async (command) => {
    const agent = { provider: 'scripted', script: { rules: [{ reply: 'Hi' }] } };
    const { code, err } = await run([command, '--data', ':memory:'], agent);
    expect(code).toBe(1);
    expect(err).toContain(
      `troupe ${command} needs a package that is not installed: npm install @troupe/doors`,
    );
  },
);

test('without @troupe/doors a definition with doors is refused at the start, with the command that installs it', async () => {
  const agent = { provider: 'scripted', script: { rules: [{ reply: 'Hi' }] } };
  const args = ['dev', 'agents.json', '--data', ':memory:', '--json'];
  const { code, err } = await run(args, agent, {}, { doors: ['openai'] });
  expect(code).toBe(1);
  expect(JSON.parse(err.trim().split('\n').at(-1) ?? '')).toMatchObject({
    error: {
      code: 'package_missing',
      message: 'the door "openai" needs a package that is not installed: npm install @troupe/doors',
      data: { packages: ['@troupe/doors'] },
    },
  });
});

test('without its package a transcript of another program is refused with the command that installs it; an export comes in', async () => {
  const agent = { provider: 'scripted', script: { rules: [{ reply: 'Hi' }] } };
  const said = { id: 'e1', author: { kind: 'user', id: 'u', name: 'U' }, to: [], body: { content: 'Hello' } };
  const files = {
    'messages.json': [{ role: 'user', content: 'Hello' }],
    'export.jsonl': { troupe: 1, conversation: 'c1' },
  };
  for (const [name, value] of Object.entries(files))
    writeFileSync(path.join(dir, name), `${JSON.stringify(value)}\n`);
  appendFileSync(path.join(dir, 'export.jsonl'), JSON.stringify({ ...said, kind: 'message', at: 1 }));
  for (const format of ['auto', 'openai']) {
    const args = ['import', 'messages.json', '--format', format, '--dry-run', '--json'];
    const { code, err } = await run(args, agent);
    expect(code).toBe(1);
    expect(JSON.parse(err.trim().split('\n').at(-1) ?? '')).toMatchObject({
      error: {
        code: 'package_missing',
        message:
          'a transcript of another program needs the package @troupe/importers, which is not installed: npm install @troupe/importers',
        data: { packages: ['@troupe/importers'] },
      },
    });
  }
  const { code, out } = await run(['import', 'export.jsonl', '--json'], agent);
  expect([code, JSON.parse(out)]).toMatchObject([0, { format: 'troupe', conversation: 'c1', events: 1 }]);
});

test('doctor names the packages that the agents file and the services need', async () => {
  const urls = { MONGODB_URL: 'mongodb://127.0.0.1:1/t', REDIS_URL: 'redis://127.0.0.1:1' };
  const { code, out } = await run(['doctor', 'agents.json'], { provider: 'anthropic' }, urls);
  expect(code).toBe(1);
  expect(out).toMatch(/^failed +package .*npm install @anthropic-ai\/sdk@1$/m);
  expect(out).toMatch(/^failed +mongodb .*npm install mongodb@7 bullmq@6 ioredis@6$/m);
  expect(out).toMatch(/^failed +redis .*npm install mongodb@7 bullmq@6 ioredis@6$/m);
});

test('doctor names the packages of PostgreSQL, which are others', async () => {
  const urls = { POSTGRES_URL: 'postgres://127.0.0.1:1/t', REDIS_URL: 'redis://127.0.0.1:1' };
  const { out } = await run(
    ['doctor', 'agents.json'],
    { provider: 'scripted', script: { rules: [{ reply: 'Hi' }] } },
    urls,
  );
  expect(out).toMatch(/^failed +postgres .*npm install @troupe\/postgres bullmq@6 ioredis@6$/m);
  expect(out).toMatch(/^failed +redis .*npm install @troupe\/postgres bullmq@6 ioredis@6$/m);
});

test.each(['openai', 'openai-compatible'])(
  'without the SDK of OpenAI the %s provider is refused at the start, with the command that installs it',
  async (provider) => {
    const args = ['send', 'c1', 'Hello', '--to', 'ada', '--wait', '--json', '--data', ':memory:'];
    const { code, err } = await run(args, { provider }, { OPENAI_API_KEY: 'k' });
    expect(code).toBe(1);
    expect(JSON.parse(err.trim().split('\n').at(-1) ?? '')).toMatchObject({
      error: {
        code: 'package_missing',
        message:
          'a provider with the API of OpenAI needs a package that is not installed: npm install openai@7',
        data: { packages: ['openai'] },
      },
    });
  },
);

test.each([
  ['claude-code', {}],
  ['codex', {}],
  ['a2a', { url: 'http://127.0.0.1:1' }],
])(
  'without @troupe/agents the %s provider is refused at the start, and by doctor',
  async (provider, fields) => {
    const message = `the ${provider} provider needs a package that is not installed: npm install @troupe/agents`;
    const args = ['send', 'c1', 'Hello', '--to', 'ada', '--wait', '--json', '--data', ':memory:'];
    const { code, err } = await run(args, { provider, ...fields });
    expect(code).toBe(1);
    expect(JSON.parse(err.trim().split('\n').at(-1) ?? '')).toMatchObject({
      error: { code: 'package_missing', message, data: { packages: ['@troupe/agents'] } },
    });
    const doctor = await run(['doctor', 'agents.json'], { provider, ...fields });
    expect(doctor.code).toBe(1);
    expect(doctor.out).toMatch(new RegExp(`^failed +package +${message}$`, 'm'));
  },
);

test('the commands name the versions of the peers that the package declares', () => {
  const { peerDependencies } = JSON.parse(readFileSync('package.json', 'utf8')) as {
    peerDependencies: Record<string, string>;
  };
  for (const [name, major] of PACKAGES)
    if (major === null) expect(name).toMatch(/^@troupe\//);
    else expect(peerDependencies[name]).toMatch(new RegExp(`^\\^${major}\\.`));
});

test('an installed package that cannot be loaded keeps its own error', async () => {
  const broken = Object.assign(new Error("Cannot find package 'bson' imported from mongodb"), {
    code: 'ERR_MODULE_NOT_FOUND',
  });
  await expect(loadWith(DISTRIBUTED, () => Promise.reject(broken))).rejects.toBe(broken);
  expect(isFound('zod')).toBe(true);
  expect(isFound('no-such-package')).toBe(false);
});
