import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';
import { ask, siteTest } from '../cli/distributed.ts';
import { readEvents } from '../cli/read-events.ts';
import { CLI, type Workplace, workplace } from '../cli/harness.ts';
import { findOnPath } from '../services/run-command.ts';

/**
 * What the image, the chart and the units promise: the commands run as a user that owns nothing, has no capability and can
 * write only where it is told to.
 */
const UID = 61_234;
const launcher =
  `setpriv --reuid=${UID} --regid=${UID} --clear-groups --inh-caps=-all --bounding-set=-all --no-new-privs`.split(
    ' ',
  );
const reason = whyNot();

function whyNot(): string | null {
  if (process.getuid?.() !== 0 || !findOnPath('setpriv')) return 'needs root and setpriv';
  for (let dir = path.dirname(CLI); dir !== '/'; dir = path.dirname(dir))
    if ((statSync(dir).mode & 0o001) === 0) return `others may not enter ${dir}`;
  return null;
}

/** Lets the user read the workplace, and gives it one folder. */
function admit({ dir }: Workplace): string {
  for (const each of [path.dirname(dir), dir])
    if ((statSync(each).mode & 0o001) === 0) chmodSync(each, 0o711);
  const own = path.join(dir, 'own');
  mkdirSync(own);
  chmodSync(own, 0o777);
  return own;
}

/** The files of the user beside its own folder, in the folders that all users may write to. */
function strays({ dir }: Workplace): string[] {
  const open = new Set([dir, tmpdir(), '/tmp', '/var/tmp', '/dev/shm']);
  return [...open].flatMap((folder) =>
    readdirSync(folder)
      .map((name) => path.join(folder, name))
      .filter((file) => statSync(file, { throwIfNoEntry: false })?.uid === UID),
  );
}

function expectUnprivileged(pid: number | undefined): void {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  expect(status).toContain(`Uid:\t${UID}\t${UID}\t${UID}\t${UID}`);
  expect(status).toMatch(/^CapEff:\t0+$/m);
}

if (reason !== null) test.skip(`the commands of the image run without rights (skipped: ${reason})`, () => {});
else {
  siteTest(
    'API and worker run as a user who can write nowhere but in its temporary folder, and end on SIGTERM',
    async (site) => {
      site.env['TMPDIR'] = admit(site.place);
      const [api, worker] = await Promise.all([site.serve(), site.worker([], { status: true })]);
      for (const { child } of [api, worker]) expectUnprivileged(child.pid);
      for (const url of [api.url, worker.status]) expect((await fetch(`${url}/readyz`)).status).toBe(200);
      const stream = await ask(`${api.url}/api/events?conversation=c1&after=0`);
      const sent = await ask(`${api.url}/api/conversations/c1/events`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({
          author: { kind: 'user', id: 'ana', name: 'Ana' },
          to: ['worker'],
          content: 'x',
        }),
      });
      expect(sent.status).toBe(201);
      await readEvents(stream, (seen) => seen.some(({ data }) => data['kind'] === 'turn.done'));
      for (const { child, exited } of [worker, api]) {
        child.kill('SIGTERM');
        expect(await exited).toBe(0);
      }
      expect(strays(site.place)).toEqual([]);
    },
    { launcher },
  );

  test('so does the embedded mode, which writes its data directory and nothing else', async () => {
    using place = workplace({ launcher });
    const own = admit(place);
    const args = ['dev', '--port', '0', '--data', path.join(own, 'data')];
    await using dev = await place.start(args, { TMPDIR: own });
    expectUnprivileged(dev.child.pid);
    expect((await fetch(`${String(dev.ready['url'])}/readyz`)).status).toBe(200);
    dev.child.kill('SIGTERM');
    expect(await dev.exited).toBe(0);
    expect(readdirSync(own)).toEqual(['data']);
    expect(strays(place)).toEqual([]);
  });
}
