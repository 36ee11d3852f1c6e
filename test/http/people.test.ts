import { expect, test } from 'vitest';
import * as z from 'zod';
import { PersonProfile } from '../../src/events/person.ts';
import { startGuarded, withKey } from './access.ts';

test('the profile of a person is set, read and removed, and a wrong field is named', async () => {
  await using api = await startGuarded();
  const house = await withKey(api);
  expect((await house.get('/api/people/u1')).body).toEqual({ profile: null });
  const profile = { name: 'Ana', timeZone: 'Europe/Berlin', preferences: 'short answers' };
  expect(await house.post('/api/people/u1', profile)).toMatchObject({ status: 200, body: { profile } });
  expect((await house.get('/api/people/u1')).body).toEqual({ profile });
  const bad = await house.post('/api/people/u1', { timeZone: 'Mars/Base' });
  expect(bad).toMatchObject({ status: 400, body: { error: { code: 'event_invalid' } } });
  expect(JSON.stringify(bad.body)).toContain('timeZone: must be a time zone such as Europe/Berlin');
  expect((await house.delete('/api/people/u1')).body).toEqual({ removed: true });
  expect((await house.delete('/api/people/u1')).body).toEqual({ removed: false });
});

test('a caller with an author has its own profile only, and one with certain conversations none', async () => {
  await using api = await startGuarded();
  const own = { kind: 'user', id: 'u1', name: 'Ana' } as const;
  const ana = await withKey(api, { author: own, scopes: ['read', 'write'] });
  const guest = await withKey(api, { conversations: ['c*'], scopes: ['read', 'write'] });
  const reader = await withKey(api, { scopes: ['read'] });
  expect((await ana.post('/api/people/u1', { name: 'A' })).status).toBe(200);
  for (const answer of [
    await ana.get('/api/people/u2'),
    await ana.post('/api/people/u2', { name: 'B' }),
    await ana.delete('/api/people/u2'),
    await guest.get('/api/people/u1'),
    await guest.post('/api/people/u1', {}),
  ])
    expect(answer).toMatchObject({ status: 403, body: { error: { code: 'author_refused' } } });
  expect((await reader.post('/api/people/u1', {})).status).toBe(403);
  expect((await reader.get('/api/people/u1')).body).toEqual({ profile: { name: 'A' } });
  const other = await withKey(api, {}, 'acme');
  expect((await other.get('/api/people/u1')).body).toEqual({ profile: null });
});

test('the pattern of a name in the document admits what is accepted, and no control characters', () => {
  const { properties } = z.toJSONSchema(PersonProfile, { io: 'input', unrepresentable: 'any' });
  const { pattern = '' } = Object(properties?.['name']) as { pattern?: string };
  const described = new RegExp(pattern);
  for (const name of ['Ana', 'Ana Lee', ' Ana\n', '\u00c5sa', '\u{1f600}', 'a', 'a b'])
    expect([name, described.test(name), PersonProfile.safeParse({ name }).success]).toEqual([
      name,
      true,
      true,
    ]);
  for (const name of ['a\u0000', '\u0085a', 'a\u001bb'])
    expect([name, described.test(name), PersonProfile.safeParse({ name }).success]).toEqual([
      name,
      false,
      false,
    ]);
  for (const name of ['', '  ', 'a\nb', 'a\u2028b', 'a\u200eb'])
    expect([name, PersonProfile.safeParse({ name }).success]).toEqual([name, false]);
});
