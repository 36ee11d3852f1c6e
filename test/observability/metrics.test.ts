import { TENANTS_SHOWN } from '../../src/events/metrics.ts';
import { expect, test } from 'vitest';
import { createMetrics } from '../../src/http/metrics.ts';
import { defineTool } from '../../src/tools/tool.ts';
import { openStage } from '../support/engine-stage.ts';
import { mind, prose, small } from '../support/compaction-stage.ts';
import * as z from 'zod';
import { startVendor, valueOf } from './stage.ts';

const USAGE = { input: 60_000, output: 10_000, cacheRead: 40_000, cacheWrite: 0, reasoning: 0 };

test('the cost of a turn is counted in dollars by provider, at list prices with cache discounts', async () => {
  await using vendor = await startVendor(() => ({ text: 'ok', usage: USAGE }));
  await vendor.say('x');
  const page = await vendor.page();
  // gpt-5: 0.02 M at 1.25, 0.04 M cached at 0.125, 0.01 M out at 10.
  expect(valueOf(page, 'troupe_cost_usd_total{tenant="default",provider="openai-compatible"}')).toBeCloseTo(
    0.13,
    9,
  );
  expect(
    valueOf(page, 'troupe_tokens_total{tenant="default",provider="openai-compatible",kind="cache_read"}'),
  ).toBe(40_000);
  expect(valueOf(page, 'troupe_unpriced_calls_total{provider="openai-compatible"}')).toBe(null);
});

test('a call of a model without a price is counted as such, at no invented cost', async () => {
  await using vendor = await startVendor(() => ({ text: 'ok', usage: USAGE }), {}, { model: 'home-made' });
  await vendor.say('x');
  const page = await vendor.page();
  expect(valueOf(page, 'troupe_unpriced_calls_total{provider="openai-compatible"}')).toBe(1);
  expect(valueOf(page, 'troupe_cost_usd_total{tenant="default",provider="openai-compatible"}')).toBe(null);
});

test('the time of a turn is split into parts, whose sum does not exceed the turn and its wait', async () => {
  await using vendor = await startVendor(({ number }) =>
    number === 1
      ? { calls: [{ name: 'look', args: '{"at":"sea"}' }] }
      : { text: 'in pieces', chunk: 3, delayMs: 20 },
  );
  await vendor.say('x');
  const page = await vendor.page();
  const part = (name: string, what: 'sum' | 'count') =>
    valueOf(page, `troupe_turn_part_seconds_${what}{part="${name}"}`);
  for (const name of ['wait', 'build', 'admission', 'first_token', 'stream', 'tools', 'commit'])
    expect([name, part(name, 'count')]).toEqual([name, 1]);
  for (const name of ['relief', 'back_off']) expect([name, part(name, 'count')]).toEqual([name, null]);
  const turn = valueOf(page, 'troupe_turn_seconds_sum{outcome="done"}') ?? 0;
  const within = ['build', 'admission', 'first_token', 'stream', 'tools', 'commit'];
  const sum = within.reduce((all, name) => all + (part(name, 'sum') ?? 0), 0);
  expect(sum).toBeLessThanOrEqual(turn);
  // Most of the time is in some part; a busy machine takes the rest.
  expect(sum).toBeGreaterThan(turn * 0.5);
  // Five pieces, 20 ms apart; the response head and one pause come before the first.
  expect(part('stream', 'sum')).toBeGreaterThan(0.06);
  const first = 'troupe_model_first_token_seconds_count{provider="openai-compatible"}';
  expect(valueOf(page, first)).toBe(2);
  expect(valueOf(page, 'troupe_tool_call_seconds_count{outcome="done"}')).toBe(1);
  expect(valueOf(page, 'troupe_wake_wait_seconds_count')).toBeGreaterThan(0);
  expect(valueOf(page, 'troupe_activation_seconds_count{outcome="done"}')).toBeGreaterThan(0);
});

test('a repeated call is counted by its error, with its pause', async () => {
  await using vendor = await startVendor(({ number }) =>
    number === 1 ? { error: { code: 'provider_overloaded', retryAfter: '0' } } : { text: 'ok' },
  );
  await vendor.say('x');
  const page = await vendor.page();
  const series = 'troupe_model_retries_total{provider="openai-compatible",code="provider_overloaded"}';
  expect(valueOf(page, series)).toBe(1);
  expect(valueOf(page, 'troupe_turn_part_seconds_count{part="back_off"}')).toBe(1);
});

test('leases are held only while turns run', async () => {
  const gate = Promise.withResolvers<void>();
  await using vendor = await startVendor(async () => {
    await gate.promise;
    return { text: 'ok' };
  });
  await vendor.troupe.send('c1', {
    author: { kind: 'user', id: 'u1', name: 'Ana' },
    to: ['bo'],
    content: 'x',
  });
  await vendor.server.arrived();
  expect(valueOf(await vendor.page(), 'troupe_leases_held')).toBe(1);
  gate.resolve();
  await vendor.troupe.idle();
  expect(valueOf(await vendor.page(), 'troupe_leases_held')).toBe(0);
});

test('a compaction is counted by strategy and reason, with the tokens saved', async () => {
  const metrics = createMetrics({ version: '1' });
  const stage = await openStage({ agents: [small('bo', mind())] });
  Object.assign(stage.deps, { metrics });
  for (let n = 0; n < 14; n++) {
    await stage.say('c1', prose(n), ['bo']);
    await stage.quiet();
  }
  const page = await metrics.text(stage.troupe);
  const compactions = (await stage.events('c1')).flatMap((event) =>
    event.kind === 'compaction.progress' && ['done', 'pruned'].includes(event.body.phase) ? [event.body] : [],
  );
  expect(compactions.length).toBeGreaterThan(0);
  const series = '{strategy="summary",reason="over_budget"}';
  const summaries = compactions.filter(
    ({ strategy, reason }) => strategy === 'summary' && reason === 'over_budget',
  );
  expect(valueOf(page, `troupe_compactions_total${series}`)).toBe(summaries.length);
  const saved = summaries.reduce((sum, { tokens }) => sum + tokens.before - (tokens.after ?? 0), 0);
  expect(saved).toBeGreaterThan(0);
  expect(valueOf(page, `troupe_compaction_saved_tokens_total${series}`)).toBe(saved);
  expect(valueOf(page, 'troupe_turn_part_seconds_count{part="relief"}')).toBeGreaterThan(0);
  await stage.troupe.close();
});

test('no label contains a name of a person, agent or tool', async () => {
  const named = defineTool({ name: 'look', description: 'l', schema: z.object({}), run: () => 'x' });
  await using vendor = await startVendor(
    ({ number }) => (number === 1 ? { calls: [{ name: 'look', args: '{}' }] } : { text: 'ok' }),
    {},
    { tools: [named], model: 'private-model' },
  );
  await vendor.say('x', 'private-place');
  const page = await vendor.page();
  for (const name of ['private', '"bo"', '"Bo"', '"look"', '"u1"']) expect(page).not.toContain(name);
});

test('metrics distinguish tenants, up to a limit', () => {
  const metrics = createMetrics({ version: '1' });
  for (let n = 0; n < TENANTS_SHOWN + 50; n++) metrics.count('events_appended', { tenant: `t${n}` });
  return expect(
    metrics.text({
      queues: async () => ({ waiting: 0, active: 0, delayed: 0 }),
      health: async () => ({ store: 'ok', queue: 'ok' }),
    }),
  ).resolves.toSatisfy((page: string) => {
    expect(valueOf(page, 'troupe_events_appended_total{tenant="t0"}')).toBe(1);
    expect(valueOf(page, 'troupe_events_appended_total{tenant="other"}')).toBe(50);
    return (
      page.split('\n').filter((line) => line.startsWith('troupe_events_appended_total')).length ===
      TENANTS_SHOWN + 2
    );
  });
});
