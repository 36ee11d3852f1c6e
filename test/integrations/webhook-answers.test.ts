import { expect, test } from 'vitest';
import type { ServerResponse } from 'node:http';
import { recordingServer } from '../net/stage.ts';
import { untilHolds } from '../support/until-holds.ts';
import { startReceiver } from './receiver.ts';
import { openStage } from './stage.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

const BODIES: Record<string, (response: ServerResponse) => void> = {
  'an unrequested coding': (response) => response.writeHead(200, { 'content-encoding': 'deflate' }).end('ok'),
  'an unknown coding': (response) => response.writeHead(200, { 'content-encoding': 'aws-chunked' }).end('ok'),
  'a body that is not coded as it says': (response) =>
    response.writeHead(200, { 'content-encoding': 'gzip' }).end('ok'),
  'a connection that breaks in its body': (response) => {
    response.writeHead(200, { 'content-length': '100' });
    response.write('ok', () => response.destroy());
  },
  'a body without an end': (response) => response.writeHead(200).write('o'),
};

test.each(Object.entries(BODIES))(
  '2xx with %s counts as delivered, and the event is sent once',
  async (_, answer) => {
    await using server = await recordingServer((_request, response) => answer(response));
    await using stage = openStage({ allow: [server.host], timeoutMs: 5_000 });
    const webhooks = stage.open();
    const { webhook } = await stage.repository().create({ url: `http://${server.host}/`, on: ['message'] });
    await webhooks.idle();
    for (let n = 0; n < 3; n++) stage.log().append('plan');
    await untilHolds(() => expect(stage.outcomes.length).toBe(3));
    expect(stage.outcomes).toEqual(['taken', 'taken', 'taken']);
    await webhooks.close();
    expect(server.requests.length).toBe(3);
    expect((await stage.repository().get(webhook.id))?.status).toMatchObject({
      delivered: 3,
      failingSince: null,
    });
  },
);

test('one failure days after a skipped event does not disable the webhook', async () => {
  await using receiver = await startReceiver((_, count) => ({ status: count <= 5 ? 422 : 503 }));
  await using stage = openStage({ allow: [receiver.host] });
  const webhooks = stage.open();
  const { webhook } = await stage.repository().create({ url: receiver.url, on: ['message'] });
  const status = async () => (await stage.repository().get(webhook.id))?.status;
  await webhooks.idle();
  stage.log().append('plan');
  await stage.passUntil(() => receiver.received.length === 5);
  await webhooks.idle();
  expect(await status()).toMatchObject({ refused: 1, retryAt: null });
  await stage.pass(4 * DAY_MS);
  const later = stage.clock.now();
  stage.log().append('plan');
  await untilHolds(() => expect(stage.outcomes.length).toBe(6));
  await untilHolds(async () => expect((await status())?.retryAt).not.toBeNull());
  expect((await status())?.failingSince).toBeGreaterThanOrEqual(later);
  expect((await stage.repository().get(webhook.id))?.disabledAt).toBeUndefined();
});

test('a webhook whose receiver refuses everything for days is disabled', async () => {
  await using receiver = await startReceiver(() => ({ status: 401 }));
  await using stage = openStage({ allow: [receiver.host] });
  const webhooks = stage.open();
  const { webhook } = await stage.repository().create({ url: receiver.url, on: ['message'] });
  await webhooks.idle();
  const isOver = () => stage.outcomes.includes('gone');
  const begun = stage.clock.now();
  for (let events = 0; events < 60 && !isOver(); events++) {
    stage.log().append('plan');
    const sent = receiver.received.length;
    await stage.passUntil(() => receiver.received.length >= sent + 5 || isOver(), 5_000);
    await stage.pass(1.5 * HOUR_MS);
  }
  const { disabledAt = 0, status } = (await stage.repository().get(webhook.id)) ?? {};
  expect(disabledAt - begun).toBeGreaterThanOrEqual(3 * DAY_MS);
  expect(disabledAt - begun).toBeLessThan(4 * DAY_MS);
  expect(status?.refused).toBeGreaterThan(30);
});

test('days without Troupe do not count as failing; days of attempts do, also an hour apart', async () => {
  await using receiver = await startReceiver(() => ({ status: 503, headers: { 'retry-after': '3600' } }));
  await using stage = openStage({ allow: [receiver.host] });
  const first = stage.open('p1');
  const { webhook } = await stage.repository().create({ url: receiver.url, on: ['message'] });
  await first.idle();
  stage.log().append('plan');
  await untilHolds(() => expect(stage.outcomes.length).toBe(1));
  await first.close();
  await stage.pass(4 * DAY_MS);
  const back = stage.clock.now();
  stage.open('p2');
  await untilHolds(() => expect(stage.outcomes.length).toBe(2));
  await untilHolds(async () =>
    expect((await stage.repository().get(webhook.id))?.status.failingSince).toBeGreaterThanOrEqual(back),
  );
  expect((await stage.repository().get(webhook.id))?.disabledAt).toBeUndefined();
  await stage.passUntil(() => stage.outcomes.includes('gone'), 600_000);
  const { disabledAt = 0, reason } = (await stage.repository().get(webhook.id)) ?? {};
  expect(disabledAt - back).toBeGreaterThanOrEqual(3 * DAY_MS);
  expect(disabledAt - back).toBeLessThan(4 * DAY_MS);
  expect(reason).toContain(`no delivery has succeeded since ${new Date(back).toISOString().slice(0, 13)}`);
});
