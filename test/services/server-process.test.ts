import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { startServerProcess } from './server-process.ts';
import { untilHolds } from '../support/until-holds.ts';

const SERVER = `require('node:http').createServer((_, answer) => answer.end('here')).listen(process.argv[1], '127.0.0.1')`;

const plan = {
  name: 'test',
  command: process.execPath,
  args: ({ port }: { port: number }) => ['-e', SERVER, String(port)],
  ask: async (port: number) => (await fetch(`http://127.0.0.1:${port}`)).text(),
};

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

test('a started server answers; stop removes it and its folder', async () => {
  const server = await startServerProcess(plan);
  expect(await plan.ask(server.port)).toBe('here');
  expect(existsSync(server.folder)).toBe(true);

  await server.stop();
  expect(isAlive(server.pid)).toBe(false);
  expect(existsSync(server.folder)).toBe(false);
});

test('a server that ends at once is reported with its last words', async () => {
  const dying = { ...plan, args: () => ['-e', `console.error('no room'); process.exit(1)`] };
  await expect(startServerProcess(dying)).rejects.toThrow(/ended at once: no room/);
});

test('a missing command is named', async () => {
  await expect(startServerProcess({ ...plan, command: '/nowhere/server' })).rejects.toThrow(/ENOENT/);
});

test('a killed parent takes its server and the folder with it', async () => {
  const parent = spawn(
    process.execPath,
    [
      '--input-type=module',
      '-e',
      `const { startServerProcess } = await import(${JSON.stringify(path.join(import.meta.dirname, 'server-process.ts'))});
       const { pid, folder } = await startServerProcess({
         name: 'test', command: process.execPath, args: ({ port }) => ['-e', ${JSON.stringify(SERVER)}, String(port)],
         ask: (port) => fetch('http://127.0.0.1:' + port),
       });
       console.log(JSON.stringify({ pid, folder }));
       setInterval(() => {}, 1_000);`,
    ],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  const line = await new Promise<string>((resolve, reject) => {
    parent.stdout.once('data', (chunk: Buffer) => resolve(chunk.toString()));
    parent.once('error', reject);
  });
  const { pid, folder } = JSON.parse(line) as { pid: number; folder: string };
  expect(isAlive(pid)).toBe(true);

  parent.kill('SIGKILL');
  await untilHolds(() => {
    expect(isAlive(pid)).toBe(false);
    expect(existsSync(folder)).toBe(false);
  });
});
