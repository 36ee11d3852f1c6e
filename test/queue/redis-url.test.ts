import { expect, test } from 'vitest';
import { shownUrl } from '../../src/cli/process/operator-flags.ts';
import { TroupeError } from '../../src/base/errors.ts';
import { parseRedisUrl, redisAddress } from '../../src/queue/redis/redis-url.ts';
import { hideSecrets } from '../../src/library/runtime/secrets.ts';

test.each([
  ['redis://cache', 'cache:6379'],
  ['rediss://ana:s3cret@cache:6380/2', 'cache:6380/2'],
  ['redis+cluster://a:7000,b,[::1]:7001', 'a:7000,b:6379,::1:7001'],
  ['rediss+cluster://ana:s3cr,t/@a:7000,b:7000/', 'a:7000,b:7000'],
  ['redis+sentinel://a,b:26380/main', 'a:26379,b:26380/main'],
  ['redis+sentinel://:s3cr%40t@a/main/3?sentinelPassword=0ther', 'a:26379/main/3'],
])('%s is Redis at %s', (url, address) => {
  expect(redisAddress(url)).toBe(address);
});

test('user, password and TLS are those of all servers, and the Sentinels may have a login of their own', () => {
  expect(parseRedisUrl('rediss+cluster://ana:s3cr%40,t@a:7000,b:7001')).toEqual({
    kind: 'cluster',
    hosts: [
      { host: 'a', port: 7_000 },
      { host: 'b', port: 7_001 },
    ],
    login: { username: 'ana', password: 's3cr@,t' },
    isSecure: true,
  });
  expect(
    parseRedisUrl('redis+sentinel://:100%@a/main/3?sentinelUsername=sen&sentinelPassword=0%26er'),
  ).toEqual({
    kind: 'sentinel',
    hosts: [{ host: 'a', port: 26_379 }],
    login: { password: '100%' },
    isSecure: false,
    name: 'main',
    db: 3,
    sentinelLogin: { sentinelUsername: 'sen', sentinelPassword: '0&er' },
  });
});

test.each([
  ['cache:6379', /cannot be read/],
  ['http://cache', /cannot be read/],
  ['redis://', /cannot be read/],
  ['redis://s3cret@a:6379,b:6379', /several hosts/],
  ['redis+cluster://s3cret@a:70000', /host that cannot be read/],
  ['redis+cluster://a,', /host that cannot be read/],
  ['redis+cluster://a/2', /database, which a Cluster does not have/],
  ['redis+cluster://a?family=6', /query/],
  ['redis+sentinel://s3cret@a:26379', /lacks the name/],
  ['redis+sentinel://a/main/x', /only the number of a database/],
  ['redis+sentinel://a/main/0/1', /only the number of a database/],
  ['redis+sentinel://a/main?password=s3cret', /sentinelUsername and sentinelPassword only/],
])('%s is refused, and the forms are named without the login', (url, why) => {
  let error: unknown;
  try {
    parseRedisUrl(url);
  } catch (thrown) {
    error = thrown;
  }
  expect(error).toBeInstanceOf(TroupeError);
  const { code, message } = error as TroupeError;
  expect([code, message]).toEqual(['config_invalid', expect.stringMatching(why)]);
  expect(message).toMatch(/redis\+cluster:\/\/.*redis\+sentinel:\/\//);
  expect(message).not.toContain('s3cret');
});

test('no password of such a URL is shown or logged', () => {
  const url = 'redis+sentinel://ana:s3cret-canary@a,b/main?sentinelPassword=0ther-canary';
  expect(shownUrl(url)).toBe('redis+sentinel://a,b/main');
  const hide = hideSecrets([], [url]);
  expect(hide(`cannot use ${url}`)).not.toContain('canary');
  expect(hide('refused: 0ther-canary, s3cret-canary')).not.toContain('canary');
});
