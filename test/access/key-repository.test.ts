import fc from 'fast-check';
import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import {
  createAuthenticator,
  createKeyRepository,
  KeyCache,
  MAX_GRACE_MS,
  MAX_KEYS,
} from '../../src/library/access/index.ts';
import type { TenantId } from '../../src/events/index.ts';
import { memoryKeyValue, type KeyValue } from '../../src/base/key-value.ts';
import { createFakeClock } from '../../packages/testing/src/fake-clock.ts';

function stage() {
  const clock = createFakeClock();
  const stored = memoryKeyValue();
  const reads: string[] = [];
  const writes: string[] = [];
  const notes: KeyValue = {
    ...stored,
    get: async (key) => {
      reads.push(key);
      return stored.get(key);
    },
    compareAndSet: async (key, from, to) => {
      writes.push(to);
      return stored.compareAndSet(key, from, to);
    },
  };
  /** One of several processes that share the entries. */
  function process() {
    const cache = new KeyCache(clock);
    const cacheOf = (tenant: string) =>
      createKeyRepository({ rootEntries: notes, tenant: tenant as TenantId, cache, clock, randomBytes });
    return {
      cacheOf,
      repository: cacheOf('acme'),
      ...createAuthenticator({ rootEntries: notes, cache, clock }),
    };
  }
  return { clock, notes, reads, writes, process, ...process() };
}

test('a key grants its scopes in its tenant, and its secret is not stored', async () => {
  const { repository, authenticate, writes } = stage();
  const ana = { kind: 'user', id: 'ana', name: 'Ana' } as const;
  const { key, secret } = await repository.create({
    name: 'bridge',
    scopes: ['read', 'write', 'read'],
    author: ana,
    conversations: ['team-*', 'hall'],
  });
  expect(secret).toMatch(/^trp_[a-z2-7]{12}_[\w-]{43}$/);
  expect(await authenticate(secret)).toEqual({
    id: `key:${key.id}`,
    tenant: 'acme',
    scopes: ['read', 'write'],
    author: ana,
    conversations: ['team-*', 'hall'],
  });
  const told = JSON.stringify([writes, key, await repository.list()]);
  expect(told).not.toContain(secret.split('_').slice(2).join('_'));
  expect(JSON.stringify(await repository.list())).not.toMatch(/[0-9a-f]{64}/);
});

test('a key that has already expired is not created', async () => {
  const { repository, clock } = stage();
  for (const expiresAt of [0, clock.now() - 1, clock.now()])
    await expect(repository.create({ name: 'x', scopes: ['read'], expiresAt })).rejects.toMatchObject({
      code: 'config_invalid',
      data: { problems: [{ path: 'expiresAt', message: expect.stringMatching(/never be valid/) }] },
    });
  expect(await repository.list()).toEqual([]);
});

test('a changed key is invalid', async () => {
  const { repository, authenticate } = stage();
  const { secret } = await repository.create({ name: 'x', scopes: ['read'] });
  await fc.assert(
    fc.asyncProperty(
      fc.nat({ max: secret.length - 1 }),
      fc.constantFrom('a', 'Z', '_', '-', '.', '0', ' ', '\u0430', ''),
      async (at, mark) => {
        const changed = secret.slice(0, at) + mark + secret.slice(at + 1);
        // The last character has two unused bits; but the text is compared, not the bytes.
        expect((await authenticate(changed)) !== null).toBe(changed === secret);
      },
    ),
  );
  for (const text of ['', 'trp__', 'trp_aaaaaaaaaaaa_', `${secret}x`, ` ${secret}`, 'x'.repeat(100_000)])
    expect(await authenticate(text)).toBe(null);
});

test('a revoked key is invalid at once here, and within 2 seconds in other processes', async () => {
  const { repository, authenticate, clock, process } = stage();
  const other = process();
  const { key, secret } = await repository.create({ name: 'x', scopes: ['read'] });
  expect(await other.authenticate(secret)).not.toBe(null);
  await repository.revoke(key.id);
  expect(await authenticate(secret)).toBe(null);
  await clock.advance(1_999);
  expect(await other.authenticate(secret)).not.toBe(null);
  await clock.advance(1);
  expect(await other.authenticate(secret)).toBe(null);
  expect(await repository.rotate(key.id)).toBe(null);
  expect((await repository.list())[0]).toMatchObject({ id: key.id, revokedAt: expect.any(Number) });
});

test('a lookup that began before a revocation does not undo it', async () => {
  const clock = createFakeClock();
  const stored = memoryKeyValue();
  let hold: Promise<void> = Promise.resolve();
  const slow = {
    ...stored,
    get: async (key: string) => {
      const text = await stored.get(key);
      await hold;
      return text;
    },
  };
  const cache = new KeyCache(clock);
  const repository = createKeyRepository({
    rootEntries: stored,
    tenant: 'a' as TenantId,
    cache,
    clock,
    randomBytes,
  });
  const { authenticate } = createAuthenticator({ rootEntries: slow, cache, clock });
  const { key, secret } = await repository.create({ name: 'x', scopes: ['read'] });
  await clock.advance(3_000);
  let release = () => {};
  hold = new Promise((resolve) => (release = resolve));
  const looking = authenticate(secret);
  await repository.revoke(key.id);
  release();
  expect(await looking).toBe(null);
  expect(await authenticate(secret)).toBe(null);
});

test('after a rotation the old secret is valid for exactly its grace time', async () => {
  const { repository, authenticate, clock } = stage();
  const first = await repository.create({ name: 'x', scopes: ['read'] });
  const second = await repository.rotate(first.key.id, { graceMs: 60_000 });
  expect(second?.key.previousUntil).toBe(clock.now() + 60_000);
  await clock.advance(59_999);
  expect(await authenticate(first.secret)).not.toBe(null);
  await clock.advance(1);
  expect(await authenticate(first.secret)).toBe(null);
  expect(await authenticate(second?.secret ?? '')).not.toBe(null);
  const third = await repository.rotate(first.key.id);
  expect(await authenticate(second?.secret ?? '')).toBe(null);
  expect(await authenticate(third?.secret ?? '')).not.toBe(null);
});

test('a key expires at its time', async () => {
  const { repository, authenticate, clock } = stage();
  const { secret } = await repository.create({ name: 'x', scopes: ['read'], expiresAt: clock.now() + 1_000 });
  await clock.advance(999);
  expect(await authenticate(secret)).not.toBe(null);
  await clock.advance(1);
  expect(await authenticate(secret)).toBe(null);
});

test('a tenant sees and changes its own keys only', async () => {
  const { repository, cacheOf, authenticate } = stage();
  const { key, secret } = await repository.create({ name: 'x', scopes: ['read'] });
  const other = cacheOf('other');
  expect(await other.list()).toEqual([]);
  expect(await other.revoke(key.id)).toBe(null);
  expect(await other.rotate(key.id)).toBe(null);
  for (const id of ['', 'x', '__proto__', 'a'.repeat(1_000_000), '$gt', '../keys/acme'])
    expect([await repository.revoke(id), await repository.rotate(id)]).toEqual([null, null]);
  expect(await authenticate(secret)).not.toBe(null);
});

test('an unknown id is looked up once in 2 seconds, and guesses evict no key', async () => {
  const { repository, authenticate, reads } = stage();
  const { secret } = await repository.create({ name: 'x', scopes: ['read'] });
  const guess = `trp_aaaaaaaaaaaa_${'x'.repeat(43)}`;
  expect([await authenticate(guess), await authenticate(guess)]).toEqual([null, null]);
  expect(reads.filter((key) => key === 'key/aaaaaaaaaaaa')).toHaveLength(1);
  const guesses = new Set<string>();
  for (let n = 0; n < 6_000; n++) {
    // Every guess has another id: digits that ids lack become letters that numbers in base 32 lack.
    const id = n
      .toString(32)
      .padStart(12, '0')
      .replaceAll(/[0189]/g, (digit) => 'wxyz'['0189'.indexOf(digit)] ?? '');
    guesses.add(id);
    await authenticate(`trp_${id}_${'x'.repeat(43)}`);
  }
  expect(guesses.size).toBe(6_000);
  const before = reads.length;
  expect(await authenticate(secret)).not.toBe(null);
  expect(reads).toHaveLength(before);
});

test.each([
  [{ name: '' }, 'name'],
  [{ name: 'x'.repeat(101) }, 'name'],
  [{ scopes: [] }, 'scopes'],
  [{ scopes: ['root'] }, 'scopes.0'],
  [{ conversations: [] }, 'conversations'],
  [{ conversations: Array.from({ length: 65 }, () => 'a') }, 'conversations'],
  [{ conversations: ['a*b'] }, 'conversations.0'],
  [{ conversations: [{ $gt: '' }] }, 'conversations.0'],
  [{ tenant: 'other' }, 'tenant'],
])('%o is refused, and nothing is stored', async (wrong, path) => {
  const { repository, writes } = stage();
  await expect(repository.create({ name: 'x', scopes: ['read'], ...wrong } as never)).rejects.toMatchObject({
    code: 'config_invalid',
    data: { problems: [expect.objectContaining({ path })] },
  });
  expect(writes).toEqual([]);
});

test('the number of keys is bounded, and invalid ones make room', async () => {
  const { repository, cacheOf } = stage();
  const first = await repository.create({ name: '0', scopes: ['read'] });
  for (let n = 1; n < MAX_KEYS - 1; n++) await repository.create({ name: `${n}`, scopes: ['read'] });
  const last = await repository.create({ name: 'last', scopes: ['read'] });
  await expect(repository.create({ name: 'x', scopes: ['read'] })).rejects.toMatchObject({
    code: 'command_refused',
    data: { limit: MAX_KEYS },
  });
  await cacheOf('other').create({ name: 'x', scopes: ['read'] });
  await repository.revoke(last.key.id);
  await repository.create({ name: 'x', scopes: ['read'] });
  const keys = await repository.list();
  expect(keys).toHaveLength(MAX_KEYS);
  expect(keys.some(({ id }) => id === last.key.id)).toBe(false);
  expect(keys[0]).toEqual(first.key);
});

test('a key is looked up again 2 seconds after the start of a slow lookup', async () => {
  const clock = createFakeClock();
  const stored = memoryKeyValue();
  let reads = 0;
  const slow = {
    ...stored,
    get: async (key: string) => {
      reads += 1;
      const text = await stored.get(key);
      await clock.advance(1_500);
      return text;
    },
  };
  const parts = { tenant: 'a' as TenantId, clock, randomBytes };
  const repository = createKeyRepository({ ...parts, rootEntries: stored, cache: new KeyCache(clock) });
  const { key, secret } = await repository.create({ name: 'x', scopes: ['read'] });
  const { authenticate } = createAuthenticator({ rootEntries: slow, cache: new KeyCache(clock), clock });
  expect(await authenticate(secret)).not.toBe(null);
  await repository.revoke(key.id);
  await clock.advance(499);
  expect([await authenticate(secret), reads]).toEqual([expect.anything(), 1]);
  await clock.advance(1);
  expect([await authenticate(secret), reads]).toEqual([null, 2]);
});

test('a record under the id of another key is invalid', async () => {
  const { repository, authenticate, notes, clock } = stage();
  const ours = await repository.create({ name: 'ours', scopes: ['read'] });
  const text = await notes.get(`key/${ours.key.id}`);
  const astray = 'a'.repeat(12);
  await notes.compareAndSet(`key/${astray}`, null, text ?? '');
  await clock.advance(2_000);
  expect(await authenticate(ours.secret.replace(ours.key.id, astray))).toBe(null);
  expect([await repository.rotate(astray), await repository.revoke(astray)]).toEqual([null, null]);
  expect(await authenticate(ours.secret)).not.toBe(null);
});

test('the grace time of an old secret is at most 30 days', async () => {
  const { repository, authenticate } = stage();
  const { key, secret } = await repository.create({ name: 'x', scopes: ['read'] });
  for (const graceMs of [MAX_GRACE_MS + 1, -1, 0.5, Number.POSITIVE_INFINITY])
    await expect(repository.rotate(key.id, { graceMs })).rejects.toMatchObject({ code: 'config_invalid' });
  expect(await repository.rotate(key.id, { graceMs: MAX_GRACE_MS })).not.toBe(null);
  expect(await authenticate(secret)).not.toBe(null);
});

test('a credential of more than 8,192 characters is refused unread', async () => {
  const looked: number[] = [];
  const clock = createFakeClock();
  const { authenticate } = createAuthenticator({
    rootEntries: memoryKeyValue(),
    cache: new KeyCache(clock),
    clock,
    jwt: {
      verify: async (token) => {
        looked.push(token.length);
        return null;
      },
    },
  });
  for (const length of [8_192, 8_193, 1_000_000]) expect(await authenticate('x'.repeat(length))).toBe(null);
  expect(looked).toEqual([8_192]);
});

test('a repeating random source never returns the key of another caller', async () => {
  const { notes, clock } = stage();
  const cache = new KeyCache(clock);
  const parts = { rootEntries: notes, cache, clock, randomBytes: (size: number) => new Uint8Array(size) };
  const { secret } = await createKeyRepository({ ...parts, tenant: 'a' as TenantId }).create({
    name: 'x',
    scopes: ['read'],
  });
  const repository = createKeyRepository({ ...parts, tenant: 'b' as TenantId });
  const another = repository.create({ name: 'y', scopes: ['admin'] });
  await expect(another).rejects.toMatchObject({ code: 'internal' });
  const { authenticate } = createAuthenticator({ rootEntries: notes, cache, clock });
  expect(await authenticate(secret)).toMatchObject({ tenant: 'a', scopes: ['read'] });
  expect(await repository.list()).toEqual([]);
});

test('an invalid record is no key', async () => {
  const { repository, authenticate, notes, clock } = stage();
  const { key, secret } = await repository.create({ name: 'x', scopes: ['read'] });
  const name = `key/${key.id}`;
  const stored = await notes.get(name);
  for (const edited of [
    '',
    '{',
    'null',
    '[]',
    stored?.replace('"read"', '"root"') ?? '',
    '{"__proto__":{}}',
  ]) {
    await notes.compareAndSet(name, await notes.get(name), edited);
    await clock.advance(2_000);
    expect(await authenticate(secret)).toBe(null);
  }
});
