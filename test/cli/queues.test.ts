import { once } from 'node:events';
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { expect, test } from 'vitest';
import { CLI, workplace } from './harness.ts';

test('queues shows waiting work and its waiting times, as the API reports them', async () => {
  using place = workplace();
  await using dev = await place.dev();
  const before = await place.call(['queues', '--json']);
  expect(before.json).toMatchObject({ waiting: 0, active: 0, delayed: 0, failed: 0, wait: null });
  await place.call(['send', 'c1', 'Hello', '--to', 'worker', '--wait']);
  const after = await place.call(['queues', '--json']);
  const reported = await (await fetch(`${dev.url}/api/queues`)).json();
  expect(after.json).toEqual(reported);
  expect(reported).toMatchObject({ wait: { count: expect.any(Number) } });
  const { code, out } = await place.call(['queues']);
  expect(code).toBe(0);
  expect(out).toMatch(
    /^waiting +0\nactive +0\ndelayed +0\nfailed +0\nwait p50 +[\d.]+ ms\nwait p95 +[\d.]+ ms\nwakes +\d+\n$/,
  );
});

test('queues --watch runs until Ctrl-C', async () => {
  using place = workplace();
  await using dev = await place.dev();
  const child = spawn(process.execPath, [CLI, 'queues', '--watch', '--json', '--url', dev.url], {
    cwd: place.dir,
  });
  const closed = once(child, 'close');
  const lines: unknown[] = [];
  for await (const line of createInterface(child.stdout)) {
    lines.push(JSON.parse(line));
    if (lines.length === 2) child.kill('SIGINT');
  }
  expect(await closed).toEqual([0, null]);
  const quiet = { waiting: 0, active: 0, delayed: 0, failed: 0, wait: null };
  expect(lines.slice(0, 2)).toMatchObject([quiet, quiet]);
});
