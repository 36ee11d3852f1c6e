import fc from 'fast-check';
import { expect } from 'vitest';
import { type Scope, SCOPES } from '../../src/library/access/index.ts';
import { limitTroupe } from '../../src/http/limit-troupe.ts';
import { attack } from './attack.ts';
import { ACME, ANA, EVE, only, openStage, statusOf, withKey } from './stage.ts';

attack(40, 'a message stops a turn only for callers that may stop it by a command', async (refused) => {
  const thinking = Promise.withResolvers<void>();
  await using stage = await openStage({
    guarded: true,
    // The test creates keys faster than an address may try them.
    app: { traffic: { triesPerSecond: 10_000 } },
    answer: async ({ last }) => {
      if (last.includes('think')) await thinking.promise;
      return { text: 'a thought' };
    },
  });
  const acme = stage.troupe.forTenant(ACME);
  await acme.send('c', { author: ANA, content: 'think', to: ['bo'] });
  await stage.vendor.arrived(1);
  const before = (await acme.events('c')).head;
  const message = { content: 'stop', to: ['bo'], whileBusy: 'interrupt' };

  const keys = fc.record({
    scopes: fc.subarray(
      SCOPES.filter((scope: Scope) => scope !== 'operate'),
      { minLength: 1 },
    ),
    author: fc.constantFrom(undefined, EVE),
    conversations: fc.constantFrom<(string[] | undefined)[]>(undefined, ['c'], ['c*']),
  });
  await fc.assert(
    fc.asyncProperty(keys, async ({ scopes, author, conversations }) => {
      const key = { scopes, ...(author && { author }), ...(conversations && { conversations }) };
      const eve = await withKey(stage, ACME, key);
      const body = author ? message : { ...message, author: EVE };
      const aborted = statusOf(
        await eve('/api/commands', {
          body: { command: 'abort', turn: 'c:bo:1', ...(!author && { author: EVE }) },
        }),
      );
      expect(aborted).toBe('403 scope_missing');
      const answer = await eve('/api/conversations/c/events', { body });
      expect(statusOf(answer)).toBe('403 scope_missing');
      if (scopes.includes('write')) expect(answer.body.error?.data).toEqual({ scope: 'operate' });
      refused(statusOf(answer));
      // The same for an application that narrows a troupe itself.
      const principal = {
        id: 'key:x',
        tenant: acme.tenant,
        scopes,
        author: author ?? null,
        conversations: conversations ?? null,
      };
      const narrowed = limitTroupe(acme, principal);
      await expect(
        narrowed.send('c', { ...message, author: EVE, whileBusy: 'interrupt' }),
      ).rejects.toMatchObject({ code: 'scope_missing' });
    }),
    { numRuns: 30 },
  );
  expect((await acme.events('c')).head).toBe(before);
  expect((await acme.actors('c')).map(({ status }) => status)).toEqual(['running']);

  // A caller who may not stop a turn can still speak: after it, or into it.
  const writer = await withKey(stage, ACME, { scopes: ['write'] });
  for (const whileBusy of ['queue', 'steer', undefined]) {
    const body = { author: EVE, content: 'hello', to: ['bo'], whileBusy };
    expect(statusOf(await writer('/api/conversations/c/events', { body }))).toBe('201');
  }
  expect(only((await acme.events('c')).events, 'turn.aborted')).toEqual([]);
  const member = await withKey(stage, ACME, { scopes: ['write', 'operate'] });
  expect(statusOf(await member('/api/conversations/c/events', { body: { ...message, author: ANA } }))).toBe(
    '201',
  );
  await expect.poll(async () => only((await acme.events('c')).events, 'turn.aborted').length).toBe(1);
  thinking.resolve();
  await stage.troupe.idle();
  expect(only((await acme.events('c')).events, 'turn.aborted')).toMatchObject([
    { body: { by: 'interrupted' } },
  ]);
});
