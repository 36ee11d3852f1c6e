import { expect } from 'vitest';
import { readStream, type StreamFrame } from '../http/harness.ts';
import { attack } from './attack.ts';
import { ACME, ANA, openStage, statusOf, withKey, ZETA } from './stage.ts';

const STREAM = '/api/events?conversation=c';

attack(13, 'a position in a stream is useless to another caller, and after a revocation', async (refused) => {
  await using stage = await openStage({ guarded: true });
  const [acme, zeta] = [stage.troupe.forTenant(ACME), stage.troupe.forTenant(ZETA)];
  const guest = await withKey(stage, ACME, { scopes: ['read'], conversations: ['c'] });
  const stranger = await withKey(stage, ZETA, { scopes: ['read'] });
  const elsewhere = await withKey(stage, ACME, { scopes: ['read'], conversations: ['d'] });
  const follow = (who: { headers: Record<string, string> }, path: string, last?: number) =>
    fetch(`${stage.url}${path}`, {
      headers: { ...who.headers, ...(last !== undefined && { 'last-event-id': `${last}` }) },
    });
  const said = (content: string) => acme.send('c', { author: ANA, content });
  await said('one of acme');
  await said('two of acme');
  const mine = await readStream(await follow(guest, STREAM, 1), (frames) => frames.length > 0);
  expect(mine.map(({ id }) => id)).toEqual(['2']);

  // With the same token as acme, another tenant follows its own conversation of that name.
  const theirs = readStream(await follow(stranger, STREAM, 0), (frames) => frames.length > 0);
  const all = readStream(await follow(stranger, '/api/events'), (frames) => frames.length > 0);
  await said('three of acme');
  await zeta.send('c', { author: ANA, content: 'one of zeta' });
  for (const frames of [await theirs, await all]) {
    expect(JSON.stringify(frames)).not.toContain('of acme');
    expect(frames.at(-1)?.data).toMatchObject({ tenant: ZETA, body: { content: 'one of zeta' } });
  }
  refused('nothing of another tenant');

  // A caller with other grants gets the same answer as for nonsense.
  const [notMine, nonsense] = [await elsewhere(STREAM), await elsewhere('/api/events?conversation=x')];
  expect([statusOf(notMine), notMine.text]).toEqual([
    '404 conversation_unknown',
    nonsense.text.replaceAll('\\"x\\"', '\\"c\\"').replaceAll('"x"', '"c"'),
  ]);
  refused(statusOf(notMine));
  const [own, silent] = [await withKey(stage, ACME, { scopes: ['write'] }), 'c'];
  expect(statusOf(await own(`/api/events?conversation=${silent}`))).toBe('403 scope_missing');
  refused('403 scope_missing');

  // Its key is revoked during the stream: the stream ends and cannot be resumed.
  const open: StreamFrame[] = [];
  const listening = readStream(await follow(guest, STREAM, 3), (frames) => {
    open.push(...frames.slice(open.length));
    return false;
  });
  await acme.keys.revoke(guest.id);
  await listening;
  await said('four of acme');
  expect(JSON.stringify(open)).not.toContain('four of acme');
  const again = await follow(guest, STREAM, 3);
  expect([again.status, await again.text()]).toEqual([401, expect.stringContaining('token_required')]);
  refused('401 token_required');
});

attack(13, 'an invalid position is refused', async (refused) => {
  await using stage = await openStage();
  await stage.say('c', 'hello');
  for (const last of ['-1', '1.5', '1e309', 'x', '{"$gt":0}', '9'.repeat(40)]) {
    const answered = await stage.ask(STREAM, { headers: { 'last-event-id': last } }).catch(() => null);
    expect([last, answered && statusOf(answered)]).toEqual([last, '400 event_invalid']);
  }
  expect(statusOf(await stage.ask('/api/events?after=1'))).toBe('400 event_invalid');
  refused('400 event_invalid');
});

attack(
  13,
  "one key neither sees, replaces nor deletes another's notifications of a task, nor takes their places",
  async (refused) => {
    const gate = Promise.withResolvers<void>();
    await using stage = await openStage({
      guarded: true,
      company: { webhooks: { allow: ['*'] } },
      // The task stays open.
      answer: async () => {
        await gate.promise;
        return { text: 'done' };
      },
    });
    const keys = { scopes: ['read', 'write'] } as const;
    const [own, other] = [
      await withKey(stage, ACME, { scopes: [...keys.scopes] }),
      await withKey(stage, ACME, { scopes: [...keys.scopes] }),
    ];
    await stage.troupe.forTenant(ACME).send('c', { author: ANA, content: 'wait', to: ['bo'] });
    const { events } = await stage.troupe.forTenant(ACME).events('c');
    const task = `c~${events.find(({ kind }) => kind === 'message')!.seq}`;
    const at = `/api/a2a/bo/tasks/${task}/pushNotificationConfigs`;
    const a2a = { 'a2a-version': '1.0' };
    const add = (who: typeof own, id: string) =>
      who(at, { body: { id, url: 'https://93.184.216.34/hook', token: `of ${id}` }, headers: a2a });
    expect(statusOf(await add(own, 'p'))).toBe('200');
    const list = await other(at, { headers: a2a });
    expect(list.body).toMatchObject({ configs: [] });
    expect((await other(`${at}/p`, { headers: a2a })).status).toBe(404);
    refused('404');
    // Neither the deletion nor one of the same id touches it.
    expect((await other(`${at}/p`, { method: 'DELETE', headers: a2a })).status).toBe(200);
    expect(statusOf(await add(other, 'p'))).toBe('200');
    for (let n = 1; n < 5; n++) expect(statusOf(await add(other, `q${n}`))).toBe('200');
    expect((await add(other, 'q5')).status).toBe(400);
    for (let n = 1; n < 5; n++) expect(statusOf(await add(own, `r${n}`))).toBe('200');
    expect((await own(`${at}/p`, { headers: a2a })).body).toMatchObject({ id: 'p' });
    refused('five places of a task are those of one key');
    gate.resolve();
  },
);
