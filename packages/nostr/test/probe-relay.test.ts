import { expect, test } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { probeRelay } from '../src/probe-relay.ts';
import { startHostileRelay } from './relay-process.ts';

/** Generous for a relay that answers. The test of a silent one takes this long. */
const TIMEOUT_MS = 3_000;
const probe = (url: string) => probeRelay(url, { clock: systemClock, timeoutMs: TIMEOUT_MS });

test('a relay that echoes an ephemeral event without an OK has accepted it', async () => {
  await using relay = await startHostileRelay({ ok: null, echo: true });
  const { read, write } = await probe(relay.url);
  expect(read.ok).toBe(true);
  expect(write).toMatchObject({ ok: true, reason: '' });
});

test('a relay that is silent about an ephemeral event has not refused it', async () => {
  await using relay = await startHostileRelay({ ok: null });
  const { read, write } = await probe(relay.url);
  expect(read.ok).toBe(true);
  expect(write).toMatchObject({ ok: false, isSilent: true });
});

test('a relay that refuses an event with a reason is reported with it', async () => {
  await using relay = await startHostileRelay({ ok: { accepted: false, reason: 'blocked: not you' } });
  const { write } = await probe(relay.url);
  expect(write).toMatchObject({ ok: false, reason: 'blocked: not you' });
  expect(write.isSilent).toBe(undefined);
});
