import { expect, test } from 'vitest';
import type { ErrorCode, TroupeError } from '../../src/base/errors.ts';
import { openMongoDriver } from '../../src/store/mongo/connect-mongo.ts';
import { createFakeClock } from '../../packages/testing/src/fake-clock.ts';
import { rejectsWith } from '../../packages/testing/src/store-stage.ts';
import { untilHolds } from '../support/until-holds.ts';
import { fakeMongod } from './fake-mongod.ts';

const PASSWORD = 'geheim-77';

/** MongoDB's own limits of an hour: what ends a wait is ours, on a clock that stands still. */
const PATIENT = 'serverSelectionTimeoutMS=3600000&connectTimeoutMS=3600000';

async function refused(
  code: ErrorCode,
  url: string,
  { afterMs = 0 }: { afterMs?: number } = {},
): Promise<TroupeError> {
  const clock = createFakeClock();
  const refusal = rejectsWith(code, openMongoDriver({ url, clock }));
  if (afterMs > 0) {
    await untilHolds(() => expect(clock.sleeping()).toBe(1));
    await clock.advance(afterMs);
  }
  const error = await refusal;
  expect(JSON.stringify([error.message, error.data])).not.toContain(PASSWORD);
  return error;
}

test('a missing server is reported within five seconds, with its address and without the password', async () => {
  const error = await refused(
    'store_unavailable',
    `mongodb://ada:${PASSWORD}@127.0.0.1:9,127.0.0.1:13/x?${PATIENT}`,
    { afterMs: 5_000 },
  );
  expect(error.message).toContain('127.0.0.1:9, 127.0.0.1:13');
});

test('a server that never answers is reported within five seconds', async () => {
  const port = await fakeMongod(null);
  const error = await refused(
    'store_unavailable',
    `mongodb://127.0.0.1:${port}/?directConnection=true&${PATIENT}`,
    { afterMs: 5_000 },
  );
  expect(error.message).toContain(`127.0.0.1:${port}`);
});

test('a server that is too old is unsuitable, and the error names both versions', async () => {
  const port = await fakeMongod({ isWritablePrimary: true, maxWireVersion: 6 });
  const error = await refused('server_unsuitable', `mongodb://127.0.0.1:${port}/?directConnection=true`);
  expect(error.message).toContain('wire version 6');
  expect(error.message).toContain('MongoDB 4.4 or later');
});

test('a secondary is unsuitable, because it cannot be written', async () => {
  const port = await fakeMongod({
    isWritablePrimary: false,
    secondary: true,
    setName: 'rs',
    maxWireVersion: 21,
  });
  const error = await refused('server_unsuitable', `mongodb://127.0.0.1:${port}/?directConnection=true`);
  expect(error.message).toMatch(/is a secondary.*replicaSet=/);
});

test('an unusable url is a config error that does not quote it', async () => {
  for (const url of [
    `mongodb//ada:${PASSWORD}@host`,
    `mongodb://ada:${PASSWORD}@host/?w=x&tls=maybe`,
    'redis://x',
    '',
  ]) {
    const error = await refused('config_invalid', url);
    expect(error.cause).toBeUndefined();
  }
});
