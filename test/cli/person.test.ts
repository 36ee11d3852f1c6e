import { expect, test } from 'vitest';
import { workplace } from './harness.ts';

test('person sets, shows and forgets what agents are told, on the data and through a server', async () => {
  using place = workplace();
  const set = ['person', 'ana', '--time-zone', 'Europe/Berlin', '--preferences', 'short answers'];
  expect((await place.call([...set, '--json'])).json).toEqual({
    profile: { timeZone: 'Europe/Berlin', preferences: 'short answers' },
  });
  await using dev = await place.dev();
  const at = ['--url', dev.url];
  expect((await place.call(['person', 'ana', '--name', 'Ana Lima', '--time-zone', '', ...at])).out).toBe(
    'name: Ana Lima\npreferences: short answers\n',
  );
  const bad = await place.call(['person', 'ana', '--time-zone', 'Mars', ...at]);
  expect(bad.code).toBe(1);
  expect(bad.err).toContain('must be a time zone such as Europe/Berlin');
  expect((await place.call(['person', 'ana', '--forget', ...at])).out).toBe('ana is forgotten\n');
  expect((await place.call(['person', 'ana'])).out).toBe('nothing is known of ana\n');
});
