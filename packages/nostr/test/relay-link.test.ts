import { afterEach, expect, test } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { RelayLink, type RelayLinkOptions } from '../src/relay-link.ts';
import { startRelay } from './relay.ts';
import { type TestRelay, startHostileRelay } from './relay-process.ts';
import { person } from './sign.ts';
import { untilHolds } from '../../../test/support/until-holds.ts';

const opened: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const each of opened.splice(0).toReversed()) await each.close();
});

async function relayOf(started: Promise<TestRelay>): Promise<TestRelay> {
  const relay = await started;
  opened.push(relay);
  return relay;
}

function linkTo(relay: { url: string }, options: Partial<RelayLinkOptions> = {}) {
  const warnings: string[] = [];
  const link = new RelayLink(relay.url, {
    clock: systemClock,
    random: () => 0.5,
    onWarning: (error) => warnings.push(String(error)),
    ...options,
    timing: { retryMs: { first: 20, most: 100 }, ...options.timing },
  });
  opened.push(link);
  return { link, warnings };
}

function follow(link: RelayLink) {
  const events: { id?: string; content?: string }[] = [];
  const state = { caughtUp: 0, stop: () => {} };
  state.stop = link.follow(() => [{ kinds: [1], limit: 100 }], {
    event: (raw) => void events.push(raw as { id: string }),
    caughtUp: () => void (state.caughtUp += 1),
  });
  return { events, state };
}

const ana = person();

test('a published event is accepted, followed and found', async () => {
  const relay = await relayOf(startRelay());
  const { link } = linkTo(relay);
  const { events, state } = follow(link);
  await untilHolds(() => expect(state.caughtUp).toBe(1));
  const event = ana.sign({ content: 'hello' });
  expect(await link.publish(event)).toEqual({ accepted: true, reason: '' });
  await untilHolds(() => expect(events).toEqual([event]));
  expect(await link.query({ ids: [event.id] })).toEqual([event]);
  expect(link.status()).toMatchObject({ state: 'open', lastError: null, isolations: 0, rejected: {} });
});

test('a refusal carries the reason of the relay', async () => {
  const relay = await relayOf(startRelay());
  const { link } = linkTo(relay);
  const event = { ...ana.sign({}), content: 'other words' };
  const { accepted, reason } = await link.publish(event);
  expect(accepted).toBe(false);
  expect(reason).toMatch(/^invalid: /);
});

test('silence about one event is distinguished from a silent relay and is no stall', async () => {
  const relay = await relayOf(startHostileRelay({ ok: null }));
  const { link } = linkTo(relay);
  await link.query({ kinds: [1] });
  const publish = () => link.publish(ana.sign({ content: `${Math.random()}` }), { timeoutMs: 1_000 });
  // Three stalls would isolate it.
  for (let n = 0; n < 3; n++) {
    expect(await publish()).toEqual({
      accepted: false,
      reason: 'unanswered: the relay does not answer',
    });
  }
  expect(link.status()).toMatchObject({ state: 'open', isolations: 0 });
  const together = await Promise.all([publish(), publish()]);
  expect(together.map(({ reason }) => reason)).toEqual(['error: no answer', 'error: no answer']);
  await relay.ask({ do: 'behave', how: { eose: false } });
  expect(await publish()).toMatchObject({ reason: 'error: no answer' });
});

test('a lost connection is blamed on a long event, never on a short one', async () => {
  const relay = await relayOf(startHostileRelay({ longest: { chars: 200, otherwise: 'cut' } }));
  const { link } = linkTo(relay);
  const publish = (content: string) => link.publish(ana.sign({ content }), { timeoutMs: 300 });
  for (let n = 0; n < 6; n++) expect((await publish('short')).reason).toMatch(/^error: /);
  await link.query({ kinds: [1] });
  expect(await link.publish(ana.sign({ content: 'x'.repeat(20_000) }))).toMatchObject({
    reason: 'unanswered: the connection broke while it was sent',
  });
});

test('an unanswered event that the relay has counts as published', async () => {
  const event = ana.sign({});
  const relay = await relayOf(startHostileRelay({ ok: null, stored: [JSON.stringify(event)] }));
  const { link } = linkTo(relay);
  expect(await link.publish(event, { timeoutMs: 2_000 })).toEqual({ accepted: true, reason: '' });
});

test('subscriptions are renewed after a lost connection', async () => {
  const relay = await relayOf(startRelay());
  const { link } = linkTo(relay);
  const { events, state } = follow(link);
  await untilHolds(() => expect(state.caughtUp).toBe(1));
  await relay.ask({ do: 'drop' });
  await untilHolds(() => expect(state.caughtUp).toBe(2));
  await link.publish(ana.sign({ content: 'after' }));
  await untilHolds(() => expect(events.map(({ content }) => content)).toEqual(['after']));
});

test('a relay that is down is reported once and found again; events published meanwhile are refused', async () => {
  const relay = await relayOf(startRelay());
  const { link, warnings } = linkTo(relay);
  const { state } = follow(link);
  await untilHolds(() => expect(state.caughtUp).toBe(1));
  await relay.ask({ do: 'down' });
  await untilHolds(() => expect(warnings).toHaveLength(1));
  expect(link.status().state).toBe('waiting');
  expect(await link.publish(ana.sign({}), { timeoutMs: 50 })).toEqual({
    accepted: false,
    reason: 'error: not connected',
  });
  await relay.ask({ do: 'up' });
  await untilHolds(() => expect(state.caughtUp).toBe(2));
  expect(warnings).toHaveLength(1);
});

test('it logs in to a relay that requires it, and repeats the requests refused before', async () => {
  const relay = await relayOf(startRelay({ auth: true }));
  const asked: string[] = [];
  const { link } = linkTo(relay, {
    async authenticate(challenge, url) {
      asked.push(url);
      return ana.sign({
        kind: 22_242,
        content: '',
        tags: [
          ['relay', url],
          ['challenge', challenge],
        ],
      });
    },
  });
  const { events, state } = follow(link);
  const event = ana.sign({ content: 'let in' });
  expect(await link.publish(event)).toMatchObject({ accepted: true });
  expect(await link.query({ ids: [event.id] })).toEqual([event]);
  await untilHolds(() => expect(state.caughtUp).toBe(1));
  await untilHolds(() => expect(events).toHaveLength(1));
  expect(asked).toContain(relay.url);
});

test('a relay that requires a login accepts nothing without one', async () => {
  const relay = await relayOf(startRelay({ auth: true }));
  const { link } = linkTo(relay);
  expect(await link.publish(ana.sign({}))).toMatchObject({
    accepted: false,
    reason: expect.stringMatching(/^auth-required: /),
  });
  await expect(link.query({ kinds: [1] })).rejects.toThrow(/auth-required/);
});

test('the next event is read when the last one is handled', async () => {
  const stored = Array.from({ length: 50 }, (_, n) => JSON.stringify({ id: `${n}` }));
  const relay = await relayOf(startHostileRelay({ stored }));
  const { link } = linkTo(relay);
  let atOnce = 0;
  let most = 0;
  const order: string[] = [];
  link.follow(() => [{ limit: 100 }], {
    async event(raw) {
      atOnce += 1;
      most = Math.max(most, atOnce);
      await new Promise((resolve) => setImmediate(resolve));
      order.push((raw as { id: string }).id);
      atOnce -= 1;
    },
    caughtUp: (received) => void order.push(`caught up after ${received}`),
  });
  await untilHolds(() => expect(order).toHaveLength(51));
  expect(most).toBe(1);
  expect(order).toEqual([...stored.map((_, n) => `${n}`), 'caught up after 50']);
});

const LIES = { garbage: 'not json', frames: '{"a":1}', depth: '["EVENT","$sub",[[[[[]]]]]]' };

test.each(Object.entries(LIES))(
  'a relay that sends %s is isolated and reported once',
  async (_name, frame) => {
    const relay = await relayOf(startHostileRelay());
    const { link, warnings } = linkTo(relay);
    const { state } = follow(link);
    await untilHolds(() => expect(state.caughtUp).toBe(1));
    await relay.ask({ do: 'push', frames: Array.from({ length: 100 }, () => frame) });
    await untilHolds(() => expect(link.status().state).toBe('isolated'));
    await untilHolds(async () => expect(await relay.ask({ do: 'clients' })).toBe(0));
    expect(warnings).toEqual([expect.stringMatching(/lies and is isolated for 60 s/)]);
    expect(await link.publish(ana.sign({}))).toEqual({ accepted: false, reason: 'error: isolated' });
    await expect(link.query({})).rejects.toThrow(/isolated/);
  },
);

test('an overlong event is not read, and alone does not isolate a relay', async () => {
  const relay = await relayOf(startHostileRelay());
  const { link } = linkTo(relay, { maxEventBytes: 1_000 });
  const { events, state } = follow(link);
  await untilHolds(() => expect(state.caughtUp).toBe(1));
  const long = JSON.stringify({ id: 'a', content: 'x'.repeat(2_000) });
  await relay.ask({ do: 'push', frames: [`["EVENT","$sub",${long}]`, '["EVENT","$sub",{"id":"b"}]'] });
  await untilHolds(() => expect(events).toEqual([{ id: 'b' }]));
  expect(link.status()).toMatchObject({ state: 'open', rejected: { size: 1 } });
});

test('huge events are refused one by one: a query and the stream go on over the same connections', async () => {
  const long = JSON.stringify({ id: 'long', content: 'x'.repeat(3_000_000) });
  const relay = await relayOf(startHostileRelay({ stored: ['{"id":"a"}', long, long, '{"id":"b"}'] }));
  const { link } = linkTo(relay);
  const { events, state } = follow(link);
  await untilHolds(() => expect(state.caughtUp).toBe(1));
  expect(events).toEqual([{ id: 'a' }, { id: 'b' }]);
  expect(await link.query({ kinds: [1] })).toEqual([{ id: 'a' }, { id: 'b' }]);
  await relay.ask({ do: 'push', frames: [`["EVENT","$sub",${long}]`, '["EVENT","$sub",{"id":"c"}]'] });
  await untilHolds(() => expect(events).toContainEqual({ id: 'c' }));
  expect(link.status()).toMatchObject({ state: 'open', lastError: null, rejected: { size: 5 } });
  expect(await relay.ask({ do: 'clients' })).toBe(2);
});

test('a relay that sends one event forever is isolated, and for longer the second time', async () => {
  const relay = await relayOf(startHostileRelay({ flood: '["EVENT","$sub",{"id":"a"}]' }));
  const { link, warnings } = linkTo(relay, { faults: { isolationMs: { first: 50, most: 10_000 } } });
  const { events } = follow(link);
  await untilHolds(() => expect(link.status().isolations).toBe(2));
  expect(events.length).toBeLessThanOrEqual(2);
  expect(warnings).toHaveLength(2);
  expect(warnings[1]).toMatch(/floods and is isolated/);
});

const USELESS: Record<string, (n: number) => string> = {
  challenges: (n) => `["AUTH","${n}"]`,
  notices: (n) => `["NOTICE","${n}"]`,
  'answers to no request': (n) => `["OK","${n}",true,""]`,
  'ends of no subscription': (n) => `["EOSE","${n}"]`,
  'repeated ends of one subscription': () => '["CLOSED","$sub","error: no"]',
};

test.each(Object.entries(USELESS))(
  'a relay that sends too many %s is isolated, and costs few signatures and requests',
  async (_name, frameOf) => {
    const relay = await relayOf(startHostileRelay());
    let signed = 0;
    const authenticate = async () => {
      signed += 1;
      return ana.sign({ kind: 22_242 });
    };
    const { link, warnings } = linkTo(relay, { authenticate });
    const { state } = follow(link);
    await untilHolds(() => expect(state.caughtUp).toBe(1));
    const frames = Array.from({ length: 3_000 }, (_, n) => frameOf(n));
    await relay.ask({ do: 'push', frames });
    await untilHolds(() => expect(link.status().state).toBe('isolated'));
    expect(warnings).toEqual([expect.stringMatching(/floods and is isolated/)]);
    expect(signed).toBeLessThanOrEqual(3);
    expect((await relay.seen('REQ')).length).toBeLessThanOrEqual(2);
  },
);

test('late events of a closed subscription are tolerated, a flood of them is not', async () => {
  const relay = await relayOf(startHostileRelay());
  const { link } = linkTo(relay);
  const { state } = follow(link);
  await untilHolds(() => expect(state.caughtUp).toBe(1));
  expect(await link.query({ kinds: [1] })).toEqual([]);
  const [, name] = (await relay.seen('REQ')).at(-1) ?? [];
  const frames = (count: number) =>
    Array.from({ length: count }, (_, n) => `["EVENT","${String(name)}",{"id":"${n}"}]`);
  await relay.ask({ do: 'push', frames: frames(100) });
  // Over the stream and over the connection of the query.
  await untilHolds(() => expect(link.status().received).toBeGreaterThanOrEqual(200));
  expect(link.status()).toMatchObject({ state: 'open', rejected: {} });
  await relay.ask({ do: 'push', frames: frames(3_000) });
  await untilHolds(() => expect(link.status().state).toBe('isolated'));
});

test('a relay is isolated after its third stall', async () => {
  const relay = await relayOf(startRelay());
  const { link, warnings } = linkTo(relay, { timing: { quietMs: 40, retryMs: { first: 10, most: 10 } } });
  const { state } = follow(link);
  await untilHolds(() => expect(state.caughtUp).toBe(1));
  await relay.ask({ do: 'stall', stalled: true });
  await untilHolds(() => expect(link.status().state).toBe('isolated'));
  expect(warnings).toContainEqual(expect.stringMatching(/stalls/));
});
