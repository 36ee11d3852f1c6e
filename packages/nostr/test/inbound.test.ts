import { npubEncode } from 'nostr-tools/nip19';
import { afterEach, expect, test } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { TroupeError } from '../../../src/base/errors.ts';
import { RelayLink } from '../src/relay-link.ts';
import { memoryKeyValue } from '../../../src/base/key-value.ts';
import { CODER, openStage, type Stage, type StageOptions, TESTER } from './inbound-stage.ts';
import { startRelay } from './relay.ts';
import type { TestRelay } from './relay-process.ts';
import { person } from './sign.ts';
import { untilHolds } from '../../../test/support/until-holds.ts';

const opened: AsyncDisposable[] = [];
afterEach(async () => {
  for (const each of opened.splice(0).toReversed()) await each[Symbol.asyncDispose]();
});

async function keep<T extends AsyncDisposable>(started: Promise<T>): Promise<T> {
  const each = await started;
  opened.push(each);
  return each;
}

async function stageWith(options: Partial<StageOptions> = {}): Promise<{ relay: TestRelay; stage: Stage }> {
  const relay = await keep(startRelay());
  const stage = await keep(openStage({ relays: [relay], strangers: 'dispatch', ...options }));
  await stage.inbound.caughtUp();
  return { relay, stage };
}

const ana = person();
const ben = person();
const now = () => Math.floor(Date.now() / 1_000);
const to = (...people: { pubkey: string }[]) => people.map(({ pubkey }) => ['p', pubkey]);

test('an event that names an agent is stored under its own id, and the agent answers', async () => {
  const { stage } = await stageWith();
  const event = ana.sign({ content: 'please build it', tags: to(CODER) });
  await stage.links[0]?.publish(event);
  const conversation = `nostr:${event.id}`;
  await untilHolds(async () => {
    const kinds = (await stage.log(conversation)).map(({ kind }) => kind);
    expect(kinds).toContain('turn.done');
  });
  const [message] = await stage.heard(conversation);
  expect(message).toMatchObject({
    id: event.id,
    author: { kind: 'user', id: ana.pubkey, name: expect.stringMatching(/^npub1\w{4}…\w{4}$/) },
    to: ['coder'],
    body: { content: 'please build it' },
  });
});

test('a reply is in the conversation of its thread and names the message it answers', async () => {
  const { stage } = await stageWith();
  const root = ana.sign({ content: 'first', tags: to(CODER) });
  const reply = ben.sign({
    content: 'second',
    tags: [['e', root.id, '', 'root'], ...to(TESTER, CODER, TESTER)],
  });
  const comment = ben.sign({
    kind: 1_111,
    tags: [['E', root.id], ['K', '1'], ['e', reply.id], ['k', '1'], ...to(CODER)],
  });
  for (const event of [root, reply, comment]) await stage.links[0]?.publish(event);
  await untilHolds(async () => expect(await stage.heard(`nostr:${root.id}`)).toHaveLength(3));
  const [first, second, third] = await stage.heard(`nostr:${root.id}`);
  expect(first).not.toHaveProperty('replyTo');
  expect(second).toMatchObject({ replyTo: root.id, to: ['tester', 'coder'] });
  expect(third).toMatchObject({ replyTo: reply.id, to: ['coder'] });
});

test('an answer to a published reply answers the event of the log that the reply was', async () => {
  const root = ana.sign({ tags: to(CODER) });
  const published = CODER.sign({ content: 'done', tags: [['e', root.id, '', 'root']] });
  const { stage } = await stageWith({
    published: { [published.id]: { conversation: `nostr:${root.id}`, event: 'said-by-coder' } },
  });
  const reply = ana.sign({
    tags: [['e', root.id, '', 'root'], ['e', published.id, '', 'reply'], ...to(CODER)],
  });
  for (const event of [root, reply]) await stage.links[0]?.publish(event);
  await untilHolds(async () => expect(await stage.heard(`nostr:${root.id}`)).toHaveLength(2));
  expect((await stage.heard(`nostr:${root.id}`))[1]).toMatchObject({ replyTo: 'said-by-coder' });
});

const THREAD = ana.sign({ content: 'first', tags: to(CODER) });
const SAID = CODER.sign({ content: 'done', tags: [['e', THREAD.id, '', 'root']] });
const PUBLISHED = { [SAID.id]: { conversation: `nostr:${THREAD.id}`, event: 'said-by-coder' } };

test.each<[string, string[][]]>([
  ['with the marker of a reply alone', [['e', SAID.id, '', 'reply']]],
  ['with one unmarked tag', [['e', SAID.id]]],
  [
    'with an unmarked tag among mentions',
    [
      ['e', SAID.id],
      ['e', 'f'.repeat(64), '', 'mention'],
    ],
  ],
  ['with the answered note as the root', [['e', SAID.id, '', 'root']]],
  [
    'with the answered note as root and reply',
    [
      ['e', SAID.id, '', 'root'],
      ['e', SAID.id, '', 'reply'],
    ],
  ],
])('an answer to a published note is in its conversation, %s', async (_what, tags) => {
  const { stage } = await stageWith({ published: PUBLISHED });
  const answer = ana.sign({ content: 'and?', tags: [...tags, ...to(CODER)] });
  // The next one names what nobody here has published.
  const next = ben.sign({ content: 'well', tags: [['e', answer.id, '', 'reply'], ...to(CODER)] });
  for (const event of [THREAD, answer, next]) await stage.links[0]?.publish(event);
  await untilHolds(async () => expect(await stage.heard(`nostr:${THREAD.id}`)).toHaveLength(3));
  const heard = await stage.heard(`nostr:${THREAD.id}`);
  expect(heard.slice(1)).toMatchObject([{ replyTo: 'said-by-coder' }, { replyTo: answer.id }]);
  expect(await stage.stored()).toHaveLength(3);
});

test('a comment on a published note is in its conversation', async () => {
  const { stage } = await stageWith({ published: PUBLISHED });
  const tags = [['E', SAID.id], ['K', '1'], ['e', SAID.id], ['k', '1'], ...to(CODER)];
  const comment = ana.sign({ kind: 1_111, tags });
  for (const event of [THREAD, comment]) await stage.links[0]?.publish(event);
  await untilHolds(async () => expect(await stage.heard(`nostr:${THREAD.id}`)).toHaveLength(2));
});

test('an answer to a note that names no agent finds the thread of the note at the relay', async () => {
  const { stage } = await stageWith();
  const root = ben.sign({ content: 'the plan', at: now() - 2 });
  const note = ben.sign({ content: 'a part', at: now() - 1, tags: [['e', root.id, '', 'root']] });
  const answer = ana.sign({ content: 'build it', tags: [['e', note.id, '', 'reply'], ...to(CODER)] });
  for (const event of [root, note, answer]) await stage.links[0]?.publish(event);
  await untilHolds(async () => expect(await stage.heard(`nostr:${root.id}`)).toHaveLength(3));
  const heard = await stage.heard(`nostr:${root.id}`);
  expect(heard.map(({ body }) => body.content)).toEqual(['the plan', 'a part', 'build it']);
  expect(heard[2]).toMatchObject({ replyTo: note.id });
});

test('an answer to a note that no relay has begins a conversation under the id of that note', async () => {
  const { stage } = await stageWith();
  const unknown = 'e'.repeat(64);
  const answer = ana.sign({ content: 'hello', tags: [['e', unknown, '', 'reply'], ...to(CODER)] });
  await stage.links[0]?.publish(answer);
  await untilHolds(async () => expect(await stage.heard(`nostr:${unknown}`)).toHaveLength(1));
});

test('an agent named in the middle of a thread finds the earlier messages, and only the mention wakes it', async () => {
  const { relay, stage } = await stageWith({ overlapMs: 60_000 });
  const past = now() - 1_000;
  const root = ana.sign({ content: 'the plan', at: past });
  const second = ben.sign({ content: 'I agree', at: past + 1, tags: [['e', root.id, '', 'root']] });
  const old = ben.sign({
    content: 'long ago',
    at: past + 2,
    tags: [['e', root.id, '', 'root'], ...to(TESTER)],
  });
  const other = ben.sign({ content: 'of another thread', at: past + 3 });
  for (const event of [second, other, old, root]) await stage.links[0]?.publish(event);
  const mention = ana.sign({ content: 'build it', tags: [['e', root.id, '', 'root'], ...to(CODER)] });
  await stage.links[0]?.publish(mention);
  const conversation = `nostr:${root.id}`;
  await untilHolds(async () =>
    expect((await stage.log(conversation)).map(({ kind }) => kind)).toContain('turn.done'),
  );
  const heard = await stage.heard(conversation);
  expect(heard.map(({ body }) => body.content)).toEqual(['the plan', 'I agree', 'long ago', 'build it']);
  expect(heard.map((event) => event.to)).toEqual([[], [], [], ['coder']]);
  expect(await relay.seen('REQ')).not.toHaveLength(0);
  expect(await stage.troupe.actors(conversation)).toHaveLength(1);
});

test('references are stored in readable form', async () => {
  const { stage } = await stageWith();
  const event = ana.sign({
    content: `nostr:${npubEncode(CODER.pubkey)} please, not nostr:npub1nonsense`,
    tags: to(CODER),
  });
  await stage.links[0]?.publish(event);
  await untilHolds(async () => expect(await stage.heard(`nostr:${event.id}`)).toHaveLength(1));
  expect((await stage.heard(`nostr:${event.id}`))[0]?.body.content).toBe(
    '@coder please, not nostr:npub1nonsense',
  );
});

test('an event signed by one of our agents is an echo, whatever agents it names', async () => {
  const { stage } = await stageWith();
  await stage.links[0]?.publish(CODER.sign({ content: 'echo', tags: to(CODER, TESTER) }));
  const after = ana.sign({ tags: to(CODER) });
  await stage.links[0]?.publish(after);
  await untilHolds(async () => expect(await stage.stored()).toEqual([after.id]));
  expect(stage.links[0]?.status().rejected).toEqual({ echo: 1 });
});

test('events of strangers are stored and wake no agent, those of people wake; a held message can be passed on', async () => {
  const { stage } = await stageWith({ strangers: 'store', people: [ana.pubkey] });
  const strange = ben.sign({ content: 'do this', tags: to(CODER) });
  const known = ana.sign({ content: 'do that', tags: to(CODER) });
  for (const event of [strange, known]) await stage.links[0]?.publish(event);
  await untilHolds(async () =>
    expect((await stage.log(`nostr:${known.id}`)).map(({ kind }) => kind)).toContain('turn.done'),
  );
  const [held] = await stage.log(`nostr:${strange.id}`);
  expect(held).toMatchObject({ to: [], context: { held: ['coder'] } });
  expect((await stage.log(`nostr:${strange.id}`)).map(({ kind }) => kind)).not.toContain('turn.started');
});

test('events of ignored strangers are not stored and cost no verification', async () => {
  const { stage } = await stageWith({ strangers: 'ignore', people: [npubEncode(ana.pubkey)] });
  await stage.links[0]?.publish(ben.sign({ tags: to(CODER) }));
  const known = ana.sign({ tags: to(CODER) });
  await stage.links[0]?.publish(known);
  await untilHolds(async () => expect(await stage.stored()).toEqual([known.id]));
  expect(stage.links[0]?.status().rejected).toEqual({ stranger: 1 });
});

test('an event from two relays is stored once and wakes once', async () => {
  const relays = [await keep(startRelay()), await keep(startRelay())];
  const stage = await keep(openStage({ relays, strangers: 'dispatch' }));
  await stage.inbound.caughtUp();
  const event = ana.sign({ tags: to(CODER) });
  for (const link of stage.links) await link.publish(event);
  const later = ana.sign({ tags: to(CODER), content: 'later' });
  for (const link of stage.links) await link.publish(later);
  await untilHolds(async () =>
    expect((await stage.log(`nostr:${later.id}`)).map(({ kind }) => kind)).toContain('turn.done'),
  );
  expect((await stage.stored()).toSorted()).toEqual([event.id, later.id].toSorted());
  const turns = (await stage.log(`nostr:${event.id}`)).filter(({ kind }) => kind === 'turn.started');
  expect(turns).toHaveLength(1);
});

test('events published while the gateway was away are found when it is back, oldest first and once each', async () => {
  const { relay, stage } = await stageWith({
    overlapMs: 7_200_000,
    strangers: 'store',
    limits: { verificationsPerSecond: 5_000, perAuthorPerSecond: 1_000 },
  });
  const before = ana.sign({ tags: to(CODER), at: now() - 3_700 });
  await stage.links[0]?.publish(before);
  await untilHolds(async () => expect(await stage.stored()).toEqual([before.id]));
  const [publisher] = stage.links;
  await stage.leave();
  expect(publisher?.status().state).toBe('closed');
  // More than one page of any relay, all within the hour.
  const writer = new RelayLink(relay.url, { clock: systemClock, random: Math.random, onWarning: () => {} });
  const authors = Array.from({ length: 20 }, () => person());
  const root = ana.sign({ content: 'while away', tags: to(CODER), at: now() - 3_600 });
  const missed = Array.from({ length: 220 }, (_, n) =>
    (authors[n % 20] ?? ana).sign({
      content: `${n}`,
      tags: [['e', root.id, '', 'root'], ...to(CODER)],
      at: now() - 3_500 + n * 10,
    }),
  );
  for (const event of [root, ...missed].toReversed())
    expect((await writer.publish(event)).accepted).toBe(true);
  await writer.close();
  await stage.come();
  await stage.inbound.caughtUp();
  const heard = await stage.heard(`nostr:${root.id}`);
  expect(heard.map(({ body }) => body.content)).toEqual(['while away', ...missed.map((_, n) => `${n}`)]);
  expect(await stage.stored()).toHaveLength(222);
});

test('an event dated too far ahead is refused and does not move the mark', async () => {
  const { stage } = await stageWith();
  await stage.links[0]?.publish(ana.sign({ tags: to(CODER), at: now() + 1_800 }));
  const soon = ana.sign({ tags: to(CODER), at: now() + 600 });
  await stage.links[0]?.publish(soon);
  const old = ana.sign({ tags: to(CODER), at: now() - 400 });
  await stage.links[0]?.publish(old);
  await untilHolds(async () => expect(await stage.stored()).toHaveLength(2));
  expect(stage.links[0]?.status().rejected).toMatchObject({ future: 1 });
  expect(stage.inbound.status()[0]?.inbound.mark).toBeLessThanOrEqual(now());
});

test('while the store is unavailable no event is lost, even if the gateway stops before the store is back', async () => {
  let isAway = true;
  let refused = 0;
  const { stage } = await stageWith({
    wrap: (troupe) => ({
      agents: troupe.agents,
      events: (conversation, range) => troupe.events(conversation, range),
      async send(conversation, message) {
        refused += 1;
        if (isAway) throw new TroupeError('store_unavailable', 'away');
        return troupe.send(conversation, message);
      },
    }),
  });
  const [before, after] = [ana.sign({ tags: to(CODER) }), ana.sign({ tags: to(CODER), content: 'after' })];
  for (const event of [before, after]) await stage.links[0]?.publish(event);
  await untilHolds(() => expect(refused).toBeGreaterThan(1));
  await stage.leave();
  expect(await stage.stored()).toEqual([]);
  isAway = false;
  await stage.come();
  await stage.inbound.caughtUp();
  expect((await stage.stored()).toSorted()).toEqual([before.id, after.id].toSorted());
});

test('one of two gateways reads a relay; when it stops the other takes over', async () => {
  const relay = await keep(startRelay());
  const keyValue = memoryKeyValue();
  const first = await keep(openStage({ relays: [relay], strangers: 'dispatch', keyValue }));
  await first.inbound.caughtUp();
  const second = await keep(openStage({ relays: [relay], strangers: 'dispatch', keyValue }));
  expect(second.inbound.status()[0]?.inbound.state).toBe('waiting');
  const holders = () =>
    [first, second].filter(({ inbound }) => inbound.status()[0]?.inbound.state !== 'waiting');
  expect(holders()).toHaveLength(1);
  await first.leave();
  await second.inbound.caughtUp();
  const event = ana.sign({ tags: to(CODER) });
  await second.links[0]?.publish(event);
  await untilHolds(async () => expect(await second.stored()).toEqual([event.id]));
});

test('a relay that was away at its first setup is asked for all events since then, by a later process too', async () => {
  const relay = await keep(startRelay());
  await relay.ask({ do: 'down' });
  let isLater = false;
  const clock = { ...systemClock, now: () => systemClock.now() + (isLater ? 3_600_000 : 0) };
  const stage = await keep(openStage({ relays: [relay], strangers: 'dispatch', clock }));
  await stage.leave();
  isLater = true;
  await relay.ask({ do: 'up' });
  const writer = new RelayLink(relay.url, { clock: systemClock, random: Math.random, onWarning: () => {} });
  const meanwhile = ana.sign({ tags: to(CODER), at: now() + 1_200 });
  expect((await writer.publish(meanwhile)).accepted).toBe(true);
  await writer.close();
  await stage.come();
  await stage.inbound.caughtUp();
  expect(await stage.stored()).toEqual([meanwhile.id]);
});

test('a process that closes leaves its relay to the next at once', async () => {
  const { relay, stage } = await stageWith({ claimMs: 3_600_000 });
  await stage.leave();
  await stage.come();
  await stage.inbound.caughtUp();
  expect(stage.inbound.status()[0]?.inbound.state).toBe('live');
  expect(relay.url).toBe(stage.links[0]?.url);
  const another = await keep(
    openStage({ relays: [relay], strangers: 'dispatch', keyValue: stage.keyValue, claimMs: 3_600_000 }),
  );
  await untilHolds(() => expect(another.inbound.status()[0]?.inbound.state).toBe('waiting'));
});
