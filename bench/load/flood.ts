import { randomBytes } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { getPublicKey } from 'nostr-tools/pure';
import { type TestRelay, startHostileRelay } from '../../packages/nostr/test/relay-process.ts';
import { person } from '../../packages/nostr/test/sign.ts';
import type { Bench } from '../figures.ts';
import { messageText, percentile } from '../support.ts';
import { postEvents } from './post-events.ts';
import { startServer } from './server-process.ts';

const KEY_VARIABLE = 'TROUPE_LOAD_KEY';
const AUTHORS = 200;
const PER_SECOND = 5_000;
/** More than can be verified during the measurement; unread events stay with the relay. */
const SIGNED = 8_000;
const APPENDS_PER_SECOND = 100;

/**
 * Cost of one tenant's appends while a relay floods another tenant's agents with signed events: with invalid
 * signatures, for which the relay is isolated, and with valid ones, which cost more.
 */
export async function measureFlood(bench: Bench, { seconds }: { seconds: number }): Promise<void> {
  const secret = randomBytes(32);
  process.env[KEY_VARIABLE] = secret.toString('hex');
  const agent = getPublicKey(secret);
  const authors = Array.from({ length: AUTHORS }, () => person());
  const signed = Array.from({ length: SIGNED }, (_, index) =>
    (authors[index % AUTHORS] ?? person()).sign({ content: messageText(index), tags: [['p', agent]] }),
  );
  const framesOf = (events: readonly object[]) =>
    events.map((event) => `["EVENT","$sub",${JSON.stringify(event)}]`);

  const quiet = await appends(seconds, []);
  const lied = await appends(seconds, framesOf(signed.map((event) => ({ ...event, sig: '0'.repeat(128) }))));
  const flooded = await appends(seconds, framesOf(signed));
  bench.heading(
    `${APPENDS_PER_SECOND} appends/s of a tenant, while a relay floods another with signed events`,
  );
  bench.add('append without a flood: p50', quiet.p50, 'ms');
  bench.add('append without a flood: p99', quiet.p99, 'ms');
  bench.add('while signatures do not hold: p50', lied.p50, 'ms');
  bench.add('while they do: p50', flooded.p50, 'ms');
  bench.add('while they do: p99', flooded.p99, 'ms');
  bench.add('events of the flood that were stored meanwhile', flooded.stored, 'events');
  bench.add('slower with signatures that do not hold, p50', lied.p50 / quiet.p50, 'times', { atMost: 2 });
  bench.add('slower with signatures that hold, p50', flooded.p50 / quiet.p50, 'times', { atMost: 2 });
  bench.add('slower with signatures that hold, p99', flooded.p99 / quiet.p99, 'times', { atMost: 2 });
}

async function appends(
  seconds: number,
  frames: readonly string[],
): Promise<{ p50: number; p99: number; stored: number }> {
  await using relay = await startHostileRelay();
  const nostr = { relays: [relay.url], strangers: 'store', keys: { agent: { env: KEY_VARIABLE } } };
  const server = await startServer({ nostr });
  try {
    const { url, keys } = server;
    const conversations = ['quiet-1', 'quiet-2', 'quiet-3'];
    const options = {
      url,
      key: keys.other,
      conversations,
      perSecond: APPENDS_PER_SECOND,
      content: messageText,
    };
    // By then it is connected.
    await postEvents({ ...options, seconds: 2 });
    const flood = pushAll(relay, frames);
    const { delays } = await postEvents({ ...options, seconds });
    await flood;
    const headers = { authorization: `Bearer ${keys.operator}` };
    const listed = await fetch(`${url}/api/conversations?limit=5000`, { headers });
    const { conversations: found } = (await listed.json()) as { conversations: unknown[] };
    return { p50: percentile(delays, 0.5), p99: percentile(delays, 0.99), stored: found.length };
  } finally {
    await server.stop();
  }
}

async function pushAll(relay: TestRelay, frames: readonly string[]): Promise<void> {
  for (let from = 0; from < frames.length; from += PER_SECOND / 10) {
    await relay.ask({ do: 'push', frames: frames.slice(from, from + PER_SECOND / 10) });
    await pause(100);
  }
}
