import { expect, test } from 'vitest';
import { memoryKeyValue, type KeyValue } from '../../../src/base/key-value.ts';
import { createFakeClock } from '../../testing/src/fake-clock.ts';
import { ANA, openOutbound, sentTo } from './outbound-stage.ts';
import { startRelay } from './relay.ts';
import { startHostileRelay } from './relay-process.ts';
import { untilHolds } from '../../../test/support/until-holds.ts';
import { problemOf } from './verify-alone.ts';

test('messages of agents from an hour in which a relay was away are published when it is back, once each and in order', async () => {
  await using relay = await startRelay();
  await relay.ask({ do: 'down' });
  const clock = createFakeClock(Date.now() - 1_000);
  await using stage = await openOutbound([relay], { clock, timing: {} });
  const root = ANA.sign({ content: 'first' });
  await stage.ask(root, ['ada']);
  for (const content of ['second', 'third', 'fourth']) {
    await stage.ask(ANA.sign({ content, tags: [['e', root.id, '', 'root']] }), ['ada']);
  }
  for (let minutes = 0; minutes < 60; minutes++) {
    for (let parts = 0; parts < 4; parts++) await clock.advance(15_000);
  }
  expect(stage.outboxes[0]?.status()).toMatchObject({
    behind: 1,
    published: 0,
    lastError: expect.stringMatching(/^error: /),
  });
  expect(stage.outboxes[0]?.status().failures).toBeGreaterThan(5);
  await relay.ask({ do: 'up' });
  await expect
    .poll(async () => {
      await clock.advance(5_000);
      return stage.outboxes[0]?.status().published;
    })
    .toBe(4);
  // An attempt whose answer was late is repeated with the same event.
  const sent = new Map((await sentTo(relay)).map((event) => [event.id, event]));
  expect([...sent.values()].map(({ content }) => content)).toEqual([1, 2, 3, 4].map((n) => `ada says ${n}`));
  expect([...sent.values()].map(problemOf)).toEqual([null, null, null, null]);
  const kept = stage.links[0]?.query({ authors: [...stage.pubkeys.values()] });
  await clock.advance(0);
  expect(await kept).toHaveLength(4);
  // The place in the log is stored after the relay has answered.
  await expect
    .poll(() => stage.outboxes[0]?.status())
    .toMatchObject({ behind: 0, failures: 0, lastError: null, retryAt: null });
});

test('a crash between the relay and the cursor publishes the same event again, and no other', async () => {
  await using relay = await startRelay();
  const keyValue = memoryKeyValue();
  const forgetful: KeyValue = {
    ...keyValue,
    async compareAndSet(key, from, to) {
      if (key.startsWith('sent/')) throw new Error('the process has crashed');
      return keyValue.compareAndSet(key, from, to);
    },
    // The claim of the crashed process has ended.
    claim: async () => true,
  };
  await using stage = await openOutbound([relay], { keyValue: forgetful });
  const root = ANA.sign({ content: 'first' });
  await stage.ask(root, ['ada']);
  await expect.poll(async () => (await sentTo(relay)).length).toBeGreaterThan(0);
  const before = (await sentTo(relay)).length;
  await stage.restart({ ...keyValue, claim: async () => true });
  await stage.outboxes[0]?.idle();
  const sent = await sentTo(relay);
  expect(sent.length).toBeGreaterThan(before);
  expect(new Set(sent.map((event) => JSON.stringify(event))).size).toBe(1);
  const [said] = await stage.said(root);
  expect(await stage.published.publishedAs(sent[0]?.id ?? '')).toEqual({
    conversation: `nostr:${root.id}`,
    event: said?.id,
  });
  const [link] = stage.links;
  expect(await link?.query({ authors: [...stage.pubkeys.values()] })).toHaveLength(1);
});

test('a relay that is away delays no other', async () => {
  await using here = await startRelay();
  await using away = await startRelay();
  await away.ask({ do: 'down' });
  // The claim of the process before has ended.
  await using stage = await openOutbound([away, here], {
    keyValue: { ...memoryKeyValue(), claim: async () => true },
  });
  await stage.ask(ANA.sign({}), ['ada', 'bob']);
  await stage.outboxes[1]?.idle();
  expect((await sentTo(here)).map(({ content }) => content)).toEqual(
    expect.arrayContaining(['ada says 1', 'bob says 1']),
  );
  expect(stage.outboxes.map((each) => each.status().published)).toEqual([0, 2]);
  await away.ask({ do: 'up' });
  await stage.restart();
  const arrived = async () => new Set((await sentTo(away)).map(({ content }) => content));
  await expect.poll(arrived).toEqual(new Set(['ada says 1', 'bob says 1']));
  expect((await sentTo(here)).length).toBe(2);
});

test('an event that a relay refuses for good is counted, reported once and skipped', async () => {
  await using relay = await startHostileRelay({ ok: { accepted: false, reason: 'blocked: not you' } });
  await using stage = await openOutbound([relay]);
  for (const content of ['first', 'second']) await stage.ask(ANA.sign({ content }), ['ada']);
  await stage.outboxes[0]?.idle();
  expect(stage.outboxes[0]?.status()).toMatchObject({ published: 0, refused: { blocked: 2 }, failures: 0 });
  expect(stage.warnings).toEqual([expect.stringMatching(/refuses events of agents: blocked: not you/)]);
  await relay.ask({ do: 'behave', how: { ok: { accepted: false, reason: 'duplicate: known' } } });
  await stage.ask(ANA.sign({ content: 'third' }), ['ada']);
  await stage.outboxes[0]?.idle();
  expect(stage.outboxes[0]?.status()).toMatchObject({ published: 1, refused: { blocked: 2 } });
});

test.each(['rate-limited: slow down', 'error: disk', 'auth-required: who'])(
  'an event refused as "%s" is sent again until it is accepted',
  async (reason) => {
    await using relay = await startHostileRelay({ ok: { accepted: false, reason } });
    await using stage = await openOutbound([relay]);
    await stage.ask(ANA.sign({}), ['ada']);
    await expect.poll(() => stage.outboxes[0]?.status().lastError).toBe(reason);
    await relay.ask({ do: 'behave', how: { ok: { accepted: true, reason: '' } } });
    await stage.outboxes[0]?.idle();
    expect(stage.outboxes[0]?.status()).toMatchObject({ published: 1, refused: {}, lastError: null });
    expect(new Set((await sentTo(relay)).map(({ id }) => id)).size).toBe(1);
  },
);

const LONG = 'x'.repeat(20_000);

test.each(['notice', 'close', 'cut'] as const)(
  'an event too long for a relay that does not say so (%s) is skipped after five attempts, and the next is sent',
  async (otherwise) => {
    await using relay = await startHostileRelay({ longest: { chars: 20_000, otherwise } });
    const clock = createFakeClock(Date.now() - 1_000);
    await using stage = await openOutbound([relay], { clock, ada: LONG });
    const root = ANA.sign({ content: 'first' });
    await stage.ask(root, ['ada']);
    await stage.ask(ANA.sign({ content: 'second', tags: [['e', root.id, '', 'root']] }), ['bob']);
    await untilHolds(async () => {
      await clock.advance(150);
      expect(stage.outboxes[0]?.status()).toMatchObject({ published: 1, behind: 0, lastError: null });
    });
    expect(stage.outboxes[0]?.status().refused).toEqual({ unanswered: 1 });
    const contents = (await sentTo(relay)).map(({ content }) => content);
    expect(contents.filter((content) => content === LONG).length).toBeGreaterThanOrEqual(5);
    expect(contents.at(-1)).toBe('bob says 1');
    expect(stage.links[0]?.status()).toMatchObject({ state: 'open', isolations: 0 });
    expect(stage.warnings).toContainEqual(expect.stringMatching(/refuses events of agents: unanswered: /));
  },
);

test.each([
  [{ do: 'down' }, { do: 'up' }],
  [
    { do: 'stall', stalled: true },
    { do: 'stall', stalled: false },
  ],
] as const)(
  'a relay that is away ($do) uses up no attempts, however long it is away and however long the event is',
  async (goes, comes) => {
    await using relay = await startRelay();
    await relay.ask(goes);
    const clock = createFakeClock(Date.now() - 1_000);
    const keyValue = { ...memoryKeyValue(), claim: async () => true };
    await using stage = await openOutbound([relay], { clock, keyValue, timing: {}, ada: LONG });
    const root = ANA.sign({ content: 'first' });
    await stage.ask(root, ['ada']);
    await stage.ask(ANA.sign({ content: 'second', tags: [['e', root.id, '', 'root']] }), ['bob']);
    for (let minutes = 0; minutes < 120; minutes++) await clock.advance(60_000);
    expect(stage.outboxes[0]?.status()).toMatchObject({ published: 0, refused: {}, behind: 1 });
    expect(stage.outboxes[0]?.status().failures).toBeGreaterThan(10);
    await relay.ask(comes);
    const [before] = stage.outboxes;
    // Requests under way end in time.
    const restarted = stage.restart();
    await untilHolds(async () => {
      await clock.advance(250);
      const now = stage.outboxes[0];
      expect(now).not.toBe(before);
      expect(now?.status()).toMatchObject({ behind: 0, refused: {} });
      expect((before?.status().published ?? 0) + (now?.status().published ?? 0)).toBeGreaterThanOrEqual(2);
    });
    await restarted;
  },
);

test('messages in a thread whose conversation was deleted are published as new events', async () => {
  await using relay = await startRelay();
  await using stage = await openOutbound([relay]);
  const root = ANA.sign({ content: 'first' });
  const later = (content: string) => ANA.sign({ content, tags: [['e', root.id, '', 'root']] });
  await stage.ask(root, ['ada']);
  await stage.outboxes[0]?.idle();
  const [before] = await stage.said(root);
  await stage.troupe.delete(`nostr:${root.id}`, { exported: 'none' });
  await stage.ask(later('second'), ['ada']);
  await stage.ask(later('third'), ['ada']);
  await stage.outboxes[0]?.idle();
  const [after] = await stage.said(root);
  expect(after?.id).toBe(before?.id);
  const sent = await sentTo(relay);
  expect(sent.map(problemOf)).toEqual([null, null, null]);
  expect(new Set(sent.map(({ id }) => id)).size).toBe(3);
  expect(stage.outboxes[0]?.status()).toMatchObject({ published: 3, refused: {} });
});

test('nothing is published for conversations that did not come from Nostr, whatever their names and ids', async () => {
  await using relay = await startRelay();
  await using stage = await openOutbound([relay]);
  const [root, other] = [ANA.sign({ content: 'r' }), ANA.sign({ content: 'o' })];
  const author = { kind: 'user', id: 'ana', name: 'Ana' } as const;
  const said = { author, content: 'hello', to: ['ada'] };
  await stage.troupe.send(`nostr:${root.id}`, { ...said, id: root.id as never });
  await stage.troupe.send('plain', said);
  // Another author's message under the id of an event from elsewhere.
  await stage.ask(other, []);
  await stage.troupe.send(`nostr:${'e'.repeat(64)}`, { ...said, id: other.id as never });
  // A message that a client sends in an agent's name.
  await stage.troupe.send(`nostr:${other.id}`, {
    author: { kind: 'agent', id: 'ada', name: 'ada' },
    content: 'forged',
    to: [],
  });
  await stage.troupe.idle();
  await stage.outboxes[0]?.idle();
  await stage.ask(ANA.sign({ content: 'real' }), ['bob']);
  await stage.outboxes[0]?.idle();
  expect((await sentTo(relay)).map(({ content }) => content)).toEqual(['bob says 1']);
});
