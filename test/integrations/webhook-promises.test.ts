import { expect, test } from 'vitest';
import { memoryKeyValue } from '../../src/base/key-value.ts';
import { Cursors } from '../../src/library/integrations/deliver.ts';
import { webhookSecret } from '../../src/library/integrations/webhook.ts';
import { untilHolds } from '../support/until-holds.ts';
import { fakeLog } from './fake-log.ts';
import { startReceiver } from './receiver.ts';
import { openStage } from './stage.ts';

test('each webhook of a store, and each generation of a webhook, has its own secret', () => {
  const secrets = [
    webhookSecret('of the store', 'a', 1),
    webhookSecret('of the store', 'b', 1),
    webhookSecret('of the store', 'a', 2),
    webhookSecret('of another', 'a', 1),
  ];
  expect(new Set(secrets).size).toBe(4);
  expect(webhookSecret('of the store', 'a', 1)).toBe(secrets[0]);
});

test('a deleted and recreated conversation is sent from its first event, under other ids', async () => {
  await using receiver = await startReceiver();
  await using stage = openStage({ allow: [receiver.host] });
  const webhooks = stage.open();
  await stage.repository().create({ url: receiver.url, on: ['message'] });
  await webhooks.idle();
  stage.log().append('plan');
  stage.log().append('plan');
  await webhooks.idle();
  stage.log().delete('plan');
  await stage.pass(1_000);
  for (let n = 0; n < 3; n++) stage.log().append('plan');
  await webhooks.idle();
  expect(receiver.received.map(({ body }) => body.event.seq)).toEqual([1, 2, 1, 2, 3]);
  expect(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size).toBe(5);
});

test('a process that finds a cursor changed by another process drops its own', async () => {
  const keyValue = memoryKeyValue();
  const log = fakeLog({ now: () => 0 });
  const events = Array.from({ length: 4 }, () => log.append('plan'));
  const [first, second] = [new Cursors(keyValue, 'f', () => 0), new Cursors(keyValue, 'f', () => 0)];
  for (const each of [first, second]) expect(await each.of('plan')).toBeNull();
  for (const event of events) await first.move('plan', event);
  expect(await first.save('plan')).toBe(true);
  for (const event of events.slice(0, 1)) await second.move('plan', event);
  expect(await second.save('plan')).toBe(false);
  expect(await second.of('plan')).toMatchObject({ seq: 4 });
});

test('unreadable webhooks are reported, and no change removes them', async () => {
  await using stage = openStage();
  for (const unreadable of ['{', '[{"id":"w"}]']) {
    const keyValue = stage.keyValue();
    const stored = await keyValue.get('webhooks');
    await keyValue.compareAndSet('webhooks', stored, unreadable);
    const made = stage.repository().create({ url: 'https://example.org/', on: ['*'] });
    await expect(made).rejects.toThrow();
    await expect(stage.repository().list()).rejects.toThrow();
    expect(await keyValue.get('webhooks')).toBe(unreadable);
  }
});

test.each([408, 425])('the event is retried after %i until it is delivered', async (status) => {
  await using receiver = await startReceiver((_, count) => ({ status: count <= 7 ? status : 200 }));
  await using stage = openStage({ allow: [receiver.host] });
  const webhooks = stage.open();
  await stage.repository().create({ url: receiver.url, on: ['message'] });
  await webhooks.idle();
  stage.log().append('plan');
  await stage.passUntil(() => stage.outcomes.length === 8, 5_000);
  expect(stage.outcomes).toEqual([...Array(7).fill('failed'), 'taken']);
});

test('Retry-After may be a date', async () => {
  await using receiver = await startReceiver();
  await using stage = openStage({ allow: [receiver.host] });
  const at = new Date(stage.clock.now() + 120_000).toUTCString();
  receiver.answer = (_, count) =>
    count === 1 ? { status: 503, headers: { 'retry-after': at } } : { status: 200 };
  const webhooks = stage.open();
  const { webhook } = await stage.repository().create({ url: receiver.url, on: ['message'] });
  await webhooks.idle();
  stage.log().append('plan');
  await untilHolds(async () =>
    expect((await stage.repository().get(webhook.id))?.status.retryAt).toBeGreaterThan(
      stage.clock.now() + 100_000,
    ),
  );
  await stage.pass(100_000);
  expect(receiver.received.length).toBe(1);
  await stage.pass(25_000);
  await untilHolds(() => expect(stage.outcomes).toEqual(['failed', 'taken']));
});
