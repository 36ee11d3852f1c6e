import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { createIgnore, readCopy, readDockerfile } from '../../scripts/dockerfile.ts';
import { findOnPath } from '../services/run-command.ts';
import { readRoot, ROOT, unknownIn } from './files.ts';

// `node scripts/check-image.ts` builds it and runs what it built, which takes minutes.
const stages = readDockerfile(readRoot('Dockerfile'));
const image = stages.at(-1)?.instructions ?? [];
const of = (word: string) => image.findLast((each) => each.word === word)?.text ?? '';

interface Service {
  image?: string;
  command: string[];
  environment?: Record<string, unknown>;
  read_only?: boolean;
  cap_drop?: string[];
}
const { services } = parse(readRoot('docker-compose.yml'), { merge: true }) as {
  services: Record<'mongodb' | 'redis' | 'api' | 'worker', Service>;
};

test('every file that the image copies is in the folder of its build, or made by a stage before', () => {
  const isIgnored = createIgnore(readRoot('.dockerignore'));
  const copies = stages.flatMap(({ instructions }) =>
    instructions.filter(({ word }) => word === 'COPY').map(({ text }) => readCopy(text)),
  );
  const sources = copies.flatMap(({ from, sources }) => (from === null ? sources : []));
  expect(sources).toEqual(
    expect.arrayContaining([
      'package-lock.json',
      'src',
      'web',
      'packages/agents/package.json',
      'packages/nostr/package.json',
    ]),
  );
  expect(sources.filter((file) => !existsSync(path.join(ROOT, file)) || isIgnored(file))).toEqual([]);
  const secret = [
    '.env',
    '.git',
    'node_modules',
    '.troupe',
    'docs',
    'test',
    'packages/agents/dist',
    'packages/nostr/dist',
  ];
  expect(secret.filter((file) => !isIgnored(file))).toEqual([]);
  const names = stages.map(({ name }) => name);
  expect(copies.filter(({ from }) => from !== null && !names.includes(from))).toEqual([]);
});

test('the image has a fixed base with the Node of this repository, a numbered user, and no shell before Node', () => {
  const { devDependencies } = JSON.parse(readRoot('package.json')) as {
    devDependencies: Record<string, string>;
  };
  expect(new Set(stages.map(({ base }) => base))).toEqual(
    new Set([`node:${devDependencies['node']}-bookworm-slim`]),
  );
  expect(of('USER')).toBe('1000:1000');
  expect(JSON.parse(of('ENTRYPOINT'))).toEqual(['node', '/app/dist/cli.js']);
  expect(unknownIn(JSON.parse(of('CMD')) as string[])).toEqual([]);
});

test('the health check of the image asks whether the process should get work, and fails if nobody answers', () => {
  expect(of('HEALTHCHECK')).toContain('/readyz');
  const [, ...args] = JSON.parse(of('HEALTHCHECK').replace(/^.*?CMD /, '')) as string[];
  // Port 1: nobody listens.
  const run = () =>
    execFileSync(process.execPath, args, { env: { TROUPE_HEALTH_PORT: '1' }, stdio: 'ignore' });
  expect(run).toThrow(expect.objectContaining({ status: 1 }));
});

test('compose runs commands that exist, on read-only file systems without capabilities', () => {
  for (const { command, ...service } of [services.api, services.worker]) {
    expect(unknownIn(command)).toEqual([]);
    expect(service).toMatchObject({ read_only: true, cap_drop: ['ALL'] });
  }
  const port = services.worker.command[services.worker.command.indexOf('--status-port') + 1];
  expect(services.worker.environment?.['TROUPE_HEALTH_PORT']).toBe(Number(port));
  // Required: it listens to other containers.
  expect(services.api.environment).toHaveProperty('TROUPE_TOKEN', null);
});

test('compose gives MongoDB the options of its replica set', () => {
  expect(services.mongodb.command).toEqual(['--replSet', 'rs0', '--bind_ip_all']);
  const mongod = findOnPath('mongod');
  if (!mongod) return;
  // With `--help` the options before it are still checked.
  execFileSync(mongod, [...services.mongodb.command, '--help'], { stdio: 'ignore' });
});

const redis = findOnPath('redis-server');
const named = 'the real Redis takes the options of compose, and then evicts nothing';
test.skipIf(!redis)(redis ? named : `${named} (skipped: redis-server is not on PATH)`, async () => {
  const dir = mkdtempSync(path.join(tmpdir(), 'troupe-redis-'));
  const [, ...options] = services.redis.command;
  const args = [...options, '--port', '0', '--unixsocket', 'socket', '--dir', dir];
  const child = spawn(redis ?? '', args, { cwd: dir });
  try {
    await new Promise<void>((resolve, reject) => {
      child.stdout.on('data', (chunk: Buffer) => {
        if (chunk.includes('ready to accept connections')) resolve();
      });
      child.on('exit', (code) => reject(new Error(`redis-server ended with ${code}`)));
    });
    const ask = (name: string) =>
      execFileSync('redis-cli', ['-s', path.join(dir, 'socket'), 'CONFIG', 'GET', name], {
        encoding: 'utf8',
      });
    expect(ask('maxmemory-policy')).toContain('noeviction');
    expect(ask('appendonly')).toContain('yes');
  } finally {
    if (child.exitCode === null) {
      child.kill('SIGKILL');
      await once(child, 'exit');
    }
    rmSync(dir, { recursive: true, force: true });
  }
});
