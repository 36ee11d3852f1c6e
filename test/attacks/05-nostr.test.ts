import fc from 'fast-check';
import { verifyEvent } from 'nostr-tools/pure';
import { expect } from 'vitest';
import type { SignedEvent } from '../../packages/nostr/src/nostr-event.ts';
import { FORGERIES } from '../../packages/nostr/test/forge.ts';
import { person } from '../../packages/nostr/test/sign.ts';
import { attack } from './attack.ts';
import { ANA, BO, CY, NAMES_BO, openNostrStage } from './nostr-stage.ts';
import { ACME, only, statusOf, unchanged } from './stage.ts';

const EVE = person();

/** The changes that anybody can make to an event without its author. */
const forgery = fc.constantFrom<{ name: string; forge: (event: SignedEvent) => unknown }>(
  ...FORGERIES,
  { name: 'signature of another', forge: (event) => ({ ...event, sig: EVE.sign({}).sig }) },
  { name: 'another author', forge: (event) => ({ ...event, pubkey: EVE.pubkey }) },
  { name: 'author and id of another', forge: (event) => ({ ...event, ...pick(EVE.sign({})) }) },
  { name: 'upper-case id', forge: (event) => ({ ...event, id: `${event.id.slice(0, -1)}A` }) },
  {
    name: 'upper-case author',
    forge: (event) => ({ ...event, pubkey: event.pubkey.toUpperCase().replace(/^\d+$/, 'A') }),
  },
  { name: 'a copy of what was found good, changed', forge: verifiedCopy },
  { name: 'half a character', forge: (event) => ({ ...event, content: `${event.content}\ud800` }) },
  { name: 'numbers as texts', forge: (event) => ({ ...event, created_at: `${event.created_at}` }) },
  { name: 'a list', forge: (event) => [event] },
  { name: 'nothing', forge: () => null },
);

function pick({ id, sig }: SignedEvent): Partial<SignedEvent> {
  return { id, sig };
}

/** nostr-tools stores its verdict on the object, and copies carry it along. */
function verifiedCopy(event: SignedEvent): unknown {
  const plain = { ...event, tags: event.tags.map((tag) => [...tag]) };
  expect(verifyEvent(plain)).toBe(true);
  const copy = { ...plain, content: 'pay eve' };
  expect(verifyEvent(copy)).toBe(true);
  return copy;
}

attack(5, 'an event with any byte changed is refused, and unsigned fields are ignored', async (refused) => {
  await using nostr = await openNostrStage();
  const { stage, bring } = nostr;
  let said = 0;
  await unchanged(stage, () =>
    fc.assert(
      fc.asyncProperty(forgery, async ({ forge }) => {
        const event = ANA.sign({ content: `pay nobody ${(said += 1)}`, tags: NAMES_BO });
        const refusals = await bring(forge(event));
        expect(refusals).toHaveLength(1);
        expect(['shape', 'id', 'signature']).toContain(refusals[0]);
        refused(`${refusals[0]}`);
      }),
      { numRuns: 60 },
    ),
  );
  const extra = {
    conversationId: 'secret',
    conversation: 'secret',
    tenant: ACME,
    to: ['cy'],
    author: { kind: 'system', id: 'troupe', name: 'Troupe' },
    scopes: ['admin'],
    seq: 1,
    replyTo: 'e1',
    ...(JSON.parse('{"__proto__":{"untrusted":false}}') as object),
  };
  const stranger = EVE.sign({ content: 'hello', tags: NAMES_BO });
  const own = ANA.sign({ content: 'hello', tags: NAMES_BO });
  expect(await bring({ ...own, ...extra }, { ...stranger, ...extra })).toEqual([]);
  const conversations = (await stage.troupe.conversations()).map(({ id }) => id);
  expect(conversations.toSorted()).toEqual([`nostr:${own.id}`, `nostr:${stranger.id}`].toSorted());
  expect(await stage.troupe.forTenant(ACME).conversations()).toEqual([]);
  const [mine] = only(await stage.events(`nostr:${own.id}`), 'message');
  expect(mine).toMatchObject({
    id: own.id,
    author: { kind: 'user', id: ANA.pubkey },
    to: ['bo'],
    tenant: 'default',
  });
  expect(mine?.replyTo).toBeUndefined();
  expect((await stage.events(`nostr:${stranger.id}`))[0]).toMatchObject({
    author: { id: EVE.pubkey },
    to: [],
  });
  expect(stage.sentBy('cy')).toEqual([]);
  expect(stage.sentBy('bo')).toHaveLength(1);
  refused('unsigned fields ignored');
});

attack(6, 'an event is stored once, in its own conversation, with its own payload', async (refused) => {
  await using nostr = await openNostrStage();
  const { stage, bring } = nostr;
  const root = ANA.sign({ content: 'the plan', tags: NAMES_BO });
  const other = ANA.sign({ content: 'another plan', tags: NAMES_BO });
  const reply = ANA.sign({ content: 'go on', tags: [['e', root.id, '', 'root'], ...NAMES_BO] });
  expect(await bring(root, other, reply)).toEqual([]);
  const asked = stage.vendor.requests.length;
  expect(asked).toBe(3);
  const replay = fc.constantFrom<(event: SignedEvent) => object>(
    (event) => ({ ...event }),
    (event) => ({ ...event, conversationId: `nostr:${other.id}`, tenant: ACME }),
    (event) => ({ ...event, tags: [['e', other.id, '', 'root'], ...NAMES_BO] }),
    (event) => ({ ...event, content: 'pay eve' }),
    (event) => ({ ...event, created_at: event.created_at + 1 }),
    (event) => ({ ...event, tags: [['p', CY.pubkey]] }),
  );
  await unchanged(stage, () =>
    fc.assert(
      fc.asyncProperty(fc.constantFrom(root, other, reply), replay, async (event, again) => {
        await bring(again(event));
      }),
      { numRuns: 40 },
    ),
  );
  refused('stored once');
  // A gateway without memory of earlier events; the log still has them.
  const forgetful = nostr.again();
  await unchanged(stage, async () => {
    expect(await forgetful.bring(root, reply, root)).toEqual([]);
    expect(await forgetful.bring({ ...other, content: 'pay eve' })).toEqual(['id']);
  });
  refused('id');

  // The same over HTTP: an id belongs to one payload.
  const path = `/api/conversations/nostr:${root.id}/events`;
  const author = { kind: 'user', id: EVE.pubkey, name: 'Eve' } as const;
  await unchanged(stage, async () => {
    for (const body of [
      { content: 'pay eve' },
      { content: 'the plan' },
      { content: 'the plan', to: ['cy'] },
    ]) {
      const answered = await stage.ask(path, { body: { id: root.id, author, ...body } });
      expect(statusOf(answered)).toBe('409 event_conflict');
    }
  });
  refused('409 event_conflict');
});

attack(7, 'times claimed by an author do not change the order', async (refused) => {
  await using nostr = await openNostrStage();
  const { stage, bring } = nostr;
  const now = Math.floor(Date.now() / 1_000);
  const far = fc.oneof(
    fc.integer({ min: now + 1_000, max: 253_402_300_799 }),
    fc.constantFrom(253_402_300_800, 2 ** 52),
  );
  await unchanged(stage, () =>
    fc.assert(
      fc.asyncProperty(far, async (at) => {
        const [reason] = await bring(ANA.sign({ at, tags: NAMES_BO }));
        expect(reason).toBe(at > 253_402_300_799 ? 'shape' : 'future');
        refused(`${reason}`);
      }),
      { numRuns: 20 },
    ),
  );
  // Whatever the events claim, they are in order of arrival, at our time.
  const root = ANA.sign({ content: 'root', at: now, tags: NAMES_BO });
  const times = fc.array(fc.integer({ min: 0, max: now + 800 }), { minLength: 5, maxLength: 8 });
  await bring(root);
  let number = 0;
  await fc.assert(
    fc.asyncProperty(times, async (ats) => {
      const before = (await stage.events(`nostr:${root.id}`)).length;
      const events = ats.map((at) =>
        ANA.sign({ content: `n ${(number += 1)}`, at, tags: [['e', root.id, '', 'root'], ...NAMES_BO] }),
      );
      expect(await bring(...events)).toEqual([]);
      const added = (await stage.events(`nostr:${root.id}`)).slice(before);
      const said = added.filter(({ author }) => author.kind === 'user');
      expect(said.map(({ id }) => id)).toEqual(events.map(({ id }) => id));
      for (const { at } of said) expect(Math.abs(at / 1_000 - now)).toBeLessThan(600);
    }),
    { numRuns: 5 },
  );
  refused('order of arrival');
});

attack(
  8,
  'tags that are many, repeated, malformed or our own wake each agent once or not at all',
  async (refused) => {
    await using nostr = await openNostrStage();
    const { stage, bring } = nostr;
    const many = Array.from({ length: 10_000 }, (_, n) => ['p', n.toString(16).padStart(64, '0')]);
    const long = [['p', 'a'.repeat(70_000)], ...NAMES_BO];
    const people = Array.from({ length: 300 }, (_, n) => ['p', n.toString(16).padStart(64, '0')]);
    await unchanged(stage, async () => {
      for (const tags of [many, [...NAMES_BO, ...people], long])
        expect(await bring(ANA.sign({ tags }))).toEqual(['tags']);
      refused('tags');
      expect(await bring(BO.sign({ tags: [...NAMES_BO, ['p', CY.pubkey]] }))).toEqual(['echo']);
      refused('echo');
      const nobody = fc.constantFrom(
        EVE.pubkey,
        'bo',
        '@bo',
        BO.pubkey.toUpperCase(),
        BO.pubkey.slice(1),
        ` ${BO.pubkey}`,
        `${BO.pubkey}\n`,
        '',
        '*',
      );
      await fc.assert(
        fc.asyncProperty(
          fc.array(fc.tuple(fc.constantFrom('p', 'P', 'e', 'pubkey'), nobody), { maxLength: 6 }),
          async (tags) => {
            expect(await bring(ANA.sign({ tags: tags.map((tag) => [...tag]) }))).toEqual(['unasked']);
          },
        ),
        { numRuns: 20 },
      );
      refused('unasked');
    });
    const twice = ANA.sign({
      tags: [...Array.from({ length: 200 }, () => ['p', BO.pubkey]), ['p'], ['p', '']],
    });
    expect(await bring(twice)).toEqual([]);
    expect(stage.sentBy('bo')).toHaveLength(1);
    expect((await stage.events(`nostr:${twice.id}`))[0]).toMatchObject({ to: ['bo'] });
    refused('woken once');
    // The same over HTTP.
    const path = '/api/conversations/c/events';
    const message = { author: { kind: 'user', id: 'eve', name: 'Eve' }, content: 'x' };
    await unchanged(stage, async () => {
      const to = many.map(([, key]) => key);
      expect(statusOf(await stage.ask(path, { body: { ...message, to } }))).toBe('400 event_invalid');
      expect(statusOf(await stage.ask(path, { body: { ...message, to: ['bo', EVE.pubkey] } }))).toBe(
        '400 agent_unknown',
      );
    });
    refused('400 event_invalid, agent_unknown');
    await stage.say('c', 'x', { to: ['bo', '@bo', BO.pubkey, 'bo'] });
    expect((await stage.events('c'))[0]).toMatchObject({ to: ['bo'] });
    expect(stage.sentBy('bo')).toHaveLength(2);
  },
);
