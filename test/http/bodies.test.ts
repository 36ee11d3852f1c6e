import { expect, onTestFinished, test } from 'vitest';
import { startGuarded, withKey } from './access.ts';
import { ANA } from './harness.ts';

const PATH = '/api/conversations/c1/events';
const PIECE = new Uint8Array(1_048_576).fill(120);

/** Starts messages that stop before their end; each resolves with its outcome. */
function halfSent(
  api: { app: { request: (path: string, init: RequestInit) => unknown } },
  authorization: string,
) {
  let left = 25;
  let stopped = () => {};
  const stands = new Promise<void>((resolve) => (stopped = resolve));
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      if (left-- > 0) return controller.enqueue(PIECE);
      stopped();
      onTestFinished(() => controller.close());
      return new Promise(() => {});
    },
  });
  const headers = { authorization, 'content-type': 'application/json' };
  const init = { method: 'POST', headers, body, duplex: 'half' } as RequestInit;
  const answer = Promise.resolve(api.app.request(PATH, init) as Promise<Response>);
  return Promise.race([stands.then(() => 'stands' as const), answer]);
}

test('a caller with many half-sent large bodies is told to retry later, and others are not', async () => {
  await using api = await startGuarded({});
  const [busy, calm] = [await withKey(api), await withKey(api)];
  const { authorization } = busy.headers;
  for (let n = 0; n < 5; n++) expect(await halfSent(api, authorization)).toBe('stands');
  const refused = await halfSent(api, authorization);
  expect(refused).not.toBe('stands');
  if (refused === 'stands') return;
  expect([refused.status, await refused.json()]).toMatchObject([
    429,
    { error: { code: 'rate_limited', data: { limit: 134_217_728 } } },
  ]);
  expect(refused.headers.get('retry-after')).toBe('1');
  expect((await calm.post(PATH, { author: ANA, to: [], content: 'mine' })).status).toBe(201);
});
