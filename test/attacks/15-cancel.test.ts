import fc from 'fast-check';
import { expect } from 'vitest';
import { attack } from './attack.ts';
import { ACME, ANA, type Asker, EVE, only, openStage, statusOf, withKey, ZETA } from './stage.ts';

attack(15, 'only permitted callers stop a turn, and only by its own id', async (refused) => {
  const thinking = Promise.withResolvers<void>();
  await using stage = await openStage({
    guarded: true,
    answer: async ({ last }) => {
      if (last.includes('think')) await thinking.promise;
      return { text: 'a thought' };
    },
  });
  const acme = stage.troupe.forTenant(ACME);
  for (const conversation of ['mine', 'other'])
    await acme.send(conversation, { author: ANA, content: 'think', to: ['bo'] });
  await stage.vendor.arrived(2);
  const speaker = await withKey(stage, ACME, { scopes: ['read', 'write'] });
  const elsewhere = await withKey(stage, ACME, { conversations: ['d'] });
  const eve = await withKey(stage, ACME, { author: EVE });
  const outsiders: [Asker, string[]][] = [
    [await withKey(stage, ZETA), ['404 conversation_unknown', '404 turn_unknown']],
    [await withKey(stage, 'default'), ['404 conversation_unknown', '404 turn_unknown']],
    [elsewhere, ['404 conversation_unknown', '404 turn_unknown']],
    [speaker, ['403 scope_missing']],
    [stage.ask, ['401 token_required']],
  ];
  const commands = fc.constantFrom<object>(
    { command: 'abort', turn: 'mine:bo:1' },
    { command: 'pause', conversation: 'mine', agent: 'bo' },
    { command: 'retire', conversation: 'mine', agent: 'bo' },
    { command: 'archive', conversation: 'mine' },
  );
  const heads = async () => [(await acme.events('mine')).head, (await acme.events('other')).head];
  const before = await heads();
  await fc.assert(
    fc.asyncProperty(commands, fc.nat(outsiders.length - 1), async (body, index) => {
      const [outsider, expected] = outsiders[index] ?? [stage.ask, []];
      const answer = statusOf(await outsider('/api/commands', { body: { ...body, author: ANA } }));
      expect(expected).toContain(answer);
      refused(answer);
    }),
    { numRuns: 40 },
  );
  // A key bound to Eve cannot stop a turn in Ana's name.
  const forged = await eve('/api/commands', { body: { command: 'abort', turn: 'mine:bo:1', author: ANA } });
  expect(statusOf(forged)).toBe('403 author_refused');
  refused('403 author_refused');
  // A permitted caller that names another turn.
  const member = await withKey(stage, ACME);
  const none = [
    'mine:bo:2',
    'mine:cy:1',
    'mine:bo:01',
    'nowhere:bo:1',
    'bo:1',
    '',
    '*',
    'mine:bo:1/1',
    'MINE:bo:1',
  ];
  for (const turn of none) {
    const answer = statusOf(await member('/api/commands', { body: { command: 'abort', turn } }));
    expect([
      '409 command_refused',
      '404 turn_unknown',
      '404 conversation_unknown',
      '400 event_invalid',
    ]).toContain(answer);
  }
  expect(await heads()).toEqual(before);
  expect((await acme.actors('mine')).map(({ status }) => status)).toEqual(['running']);

  // Only its own id stops it.
  expect(statusOf(await member('/api/commands', { body: { command: 'abort', turn: 'mine:bo:1' } }))).toBe(
    '202',
  );
  thinking.resolve();
  await stage.troupe.idle();
  expect(only((await acme.events('mine')).events, 'turn.aborted')).toHaveLength(1);
  expect(only((await acme.events('other')).events, 'turn.done')).toHaveLength(1);
  const late = await member('/api/commands', { body: { command: 'abort', turn: 'other:bo:1' } });
  expect(statusOf(late)).toBe('409 command_refused');
  refused('409 command_refused');
});
