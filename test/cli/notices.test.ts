import { expect, test } from 'vitest';
import { workplace } from './harness.ts';

test('send --people-only stores a notice that no agent answers, on the data directory and through a server', async () => {
  using place = workplace();
  const direct = await place.call(['send', 'c1', 'for people', '--people-only', '--json']);
  expect(direct.json).toMatchObject({
    event: { kind: 'notice', to: [], context: { channel: 'cli' } },
    replies: [],
  });
  expect((await place.call(['send', 'c1', 'hi', '--people-only'])).out).toMatch(/stored; no agent sees it/);
  await using dev = await place.dev();
  const sent = await place.call(['send', 'c1', 'more', '--people-only', '--url', dev.url, '--json']);
  expect(sent.json).toMatchObject({ event: { kind: 'notice', context: { channel: 'cli' } } });
  const refused = await place.call(['send', 'c1', 'x', '--people-only', '--to', 'worker', '--url', dev.url]);
  expect([refused.code, refused.err]).toEqual([
    1,
    expect.stringMatching(/^event_invalid: to: .*reaches no agent/),
  ]);
});
