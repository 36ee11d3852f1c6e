import { afterEach, expect, test, vi } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { openRelayLink, type RelayLink, type RelayLinkOptions } from '../../src/nostr/relay-link.ts';
import { type RelayProcess, startHostileRelay, startRelay } from './relay-process.ts';
import { person } from './sign.ts';

const opened: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const each of opened.splice(0).toReversed()) await each.close();
});

async function relayOf(started: Promise<RelayProcess>): Promise<RelayProcess> {
  const relay = await started;
  opened.push(relay);
  return relay;
}

function linkTo(relay: { url: string }, options: Partial<RelayLinkOptions> = {}) {
  const warnings: string[] = [];
  const link = openRelayLink(relay.url, {
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

test('what is published is accepted, followed and found', async () => {
  const relay = await relayOf(startRelay());
  const { link } = linkTo(relay);
  const { events, state } = follow(link);
  await vi.waitFor(() => expect(state.caughtUp).toBe(1));
  const event = ana.sign({ content: 'hello' });
  expect(await link.publish(event)).toEqual({ accepted: true, reason: '' });
  await vi.waitFor(() => expect(events).toEqual([event]));
  expect(await link.query({ ids: [event.id] })).toEqual([event]);
  expect(link.status()).toMatchObject({ state: 'open', lastError: null, isolations: 0, rejected: {} });
});

test('what the relay refuses is told with its reason', async () => {
  const relay = await relayOf(startRelay());
  const { link } = linkTo(relay);
  const event = { ...ana.sign({}), content: 'other words' };
  const { accepted, reason } = await link.publish(event);
  expect(accepted).toBe(false);
  expect(reason).toMatch(/^invalid: /);
});

test('after a lost connection it is subscribed again', async () => {
  const relay = await relayOf(startRelay());
  const { link } = linkTo(relay);
  const { events, state } = follow(link);
  await vi.waitFor(() => expect(state.caughtUp).toBe(1));
  await relay.ask({ do: 'drop' });
  await vi.waitFor(() => expect(state.caughtUp).toBe(2));
  await link.publish(ana.sign({ content: 'after' }));
  await vi.waitFor(() => expect(events.map(({ content }) => content)).toEqual(['after']));
});

test('a relay that is down is reported once and found again; what is published meanwhile is refused', async () => {
  const relay = await relayOf(startRelay());
  const { link, warnings } = linkTo(relay);
  const { state } = follow(link);
  await vi.waitFor(() => expect(state.caughtUp).toBe(1));
  await relay.ask({ do: 'down' });
  await vi.waitFor(() => expect(warnings).toHaveLength(1), 5_000);
  expect(link.status().state).toBe('waiting');
  expect(await link.publish(ana.sign({}), { timeoutMs: 50 })).toEqual({
    accepted: false,
    reason: 'error: not connected',
  });
  await relay.ask({ do: 'up' });
  await vi.waitFor(() => expect(state.caughtUp).toBe(2), 5_000);
  expect(warnings).toHaveLength(1);
});

test('it says who it is where the relay wants to know, and what was refused before is done after', async () => {
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
  await vi.waitFor(() => expect(state.caughtUp).toBe(1));
  await vi.waitFor(() => expect(events).toHaveLength(1));
  expect(asked).toContain(relay.url);
});

test('without a key for it, a relay that wants one takes nothing', async () => {
  const relay = await relayOf(startRelay({ auth: true }));
  const { link } = linkTo(relay);
  expect(await link.publish(ana.sign({}))).toMatchObject({
    accepted: false,
    reason: expect.stringMatching(/^auth-required: /),
  });
  await expect(link.query({ kinds: [1] })).rejects.toThrow(/auth-required/);
});

test('the next event is read when the last one was dealt with', async () => {
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
  await vi.waitFor(() => expect(order).toHaveLength(51));
  expect(most).toBe(1);
  expect(order).toEqual([...stored.map((_, n) => `${n}`), 'caught up after 50']);
});

const LIES = { garbage: 'not json', frames: '{"a":1}', depth: '["EVENT","$sub",[[[[[]]]]]]' };

test.each(Object.entries(LIES))(
  'a relay that sends %s is isolated, and told of once',
  async (_name, frame) => {
    const relay = await relayOf(startHostileRelay());
    const { link, warnings } = linkTo(relay);
    const { state } = follow(link);
    await vi.waitFor(() => expect(state.caughtUp).toBe(1));
    await relay.ask({ do: 'push', frames: Array.from({ length: 100 }, () => frame) });
    await vi.waitFor(() => expect(link.status().state).toBe('isolated'));
    await vi.waitFor(async () => expect(await relay.ask({ do: 'clients' })).toBe(0));
    expect(warnings).toEqual([expect.stringMatching(/lies and is left alone for 60 s/)]);
    expect(await link.publish(ana.sign({}))).toEqual({ accepted: false, reason: 'error: isolated' });
    await expect(link.query({})).rejects.toThrow(/isolated/);
  },
);

test('an event that is too long is not read, and by itself no reason to leave a relay', async () => {
  const relay = await relayOf(startHostileRelay());
  const { link } = linkTo(relay, { maxEventBytes: 1_000 });
  const { events, state } = follow(link);
  await vi.waitFor(() => expect(state.caughtUp).toBe(1));
  const long = JSON.stringify({ id: 'a', content: 'x'.repeat(2_000) });
  await relay.ask({ do: 'push', frames: [`["EVENT","$sub",${long}]`, '["EVENT","$sub",{"id":"b"}]'] });
  await vi.waitFor(() => expect(events).toEqual([{ id: 'b' }]));
  expect(link.status()).toMatchObject({ state: 'open', rejected: { size: 1 } });
});

test('a relay that sends one event for ever is isolated, and left alone for longer the second time', async () => {
  const relay = await relayOf(startHostileRelay({ flood: '["EVENT","$sub",{"id":"a"}]' }));
  const { link, warnings } = linkTo(relay, { faults: { isolationMs: { first: 50, most: 10_000 } } });
  const { events } = follow(link);
  await vi.waitFor(() => expect(link.status().isolations).toBe(2), 10_000);
  expect(events.length).toBeLessThanOrEqual(2);
  expect(warnings).toHaveLength(2);
  expect(warnings[1]).toMatch(/floods and is left alone/);
});

test('a relay that falls silent is isolated after the third time', async () => {
  const relay = await relayOf(startRelay());
  const { link, warnings } = linkTo(relay, { timing: { quietMs: 40, retryMs: { first: 10, most: 10 } } });
  const { state } = follow(link);
  await vi.waitFor(() => expect(state.caughtUp).toBe(1));
  await relay.ask({ do: 'stall', stalled: true });
  await vi.waitFor(() => expect(link.status().state).toBe('isolated'), 5_000);
  expect(warnings).toContainEqual(expect.stringMatching(/stalls/));
});
