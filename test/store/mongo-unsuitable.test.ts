import { expect, test } from 'vitest';
import type { ErrorCode, TroupeError } from '../../src/errors.ts';
import { openMongoDriver } from '../../src/store/mongo/connect-mongo.ts';
import { rejectsWith } from '../../src/testing/store-stage.ts';
import { fakeMongod } from './fake-mongod.ts';

const PASSWORD = 'geheim-77';

async function refused(code: ErrorCode, url: string): Promise<TroupeError> {
  const began = performance.now();
  const error = await rejectsWith(code, openMongoDriver({ url }));
  expect(performance.now() - began).toBeLessThan(5_000);
  expect(JSON.stringify([error.message, error.data])).not.toContain(PASSWORD);
  return error;
}

test('a missing server is reported within five seconds, with its address and without the password', async () => {
  const error = await refused('store_unavailable', `mongodb://ada:${PASSWORD}@127.0.0.1:9,127.0.0.1:13/x`);
  expect(error.message).toContain('127.0.0.1:9, 127.0.0.1:13');
});

test('a server that never answers is reported within five seconds', async () => {
  const port = await fakeMongod(null);
  const error = await refused('store_unavailable', `mongodb://127.0.0.1:${port}/?directConnection=true`);
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
