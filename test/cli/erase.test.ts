import { expect, test } from 'vitest';
import { workplace } from './harness.ts';

test('a person is erased on the command line once it is confirmed, and the log says so', async () => {
  using place = workplace();
  await place.call(['send', 'c1', 'I am Quorvinal', '--as', 'ana']);
  const unconfirmed = await place.call(['erase', 'ana']);
  expect([unconfirmed.code, unconfirmed.err]).toEqual([1, expect.stringContaining('add --yes to confirm')]);
  const { code, out } = await place.call(['erase', 'ana', '--yes']);
  expect([code, out]).toEqual([
    0,
    expect.stringMatching(/^The words of ana are erased: \d events in 1 conversation/),
  ]);
  const exported = await place.call(['export', 'c1']);
  expect(exported.out).not.toContain('Quorvinal');
  expect(exported.out).toContain('[erased]');
  const verified = await place.call(['doctor', '--verify']);
  expect([verified.code, verified.out]).toEqual([0, expect.stringContaining('events were erased')]);
});
