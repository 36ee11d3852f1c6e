import { expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { probeRelay } from '../src/probe-relay.ts';
import { startHostileRelay } from './relay-process.ts';

/** Of a relay that answers, much; only one that says nothing uses it up. */
const TIMEOUT_MS = 3_000;
const probe = (url: string) => probeRelay(url, { clock: systemClock, timeoutMs: TIMEOUT_MS });

test('a relay that passes an ephemeral event on and says no OK has taken it', async () => {
  await using relay = await startHostileRelay({ ok: null, echo: true });
  const { read, write } = await probe(relay.url);
  expect(read.ok).toBe(true);
  expect(write).toMatchObject({ ok: true, reason: '' });
});

test('a relay that says nothing of an ephemeral event has not refused it', async () => {
  await using relay = await startHostileRelay({ ok: null });
  const { read, write } = await probe(relay.url);
  expect(read.ok).toBe(true);
  expect(write).toMatchObject({ ok: false, isSilent: true });
});

test('a relay that says why it does not take an event has refused it', async () => {
  await using relay = await startHostileRelay({ ok: { accepted: false, reason: 'blocked: not you' } });
  const { write } = await probe(relay.url);
  expect(write).toMatchObject({ ok: false, reason: 'blocked: not you' });
  expect(write.isSilent).toBe(undefined);
});
