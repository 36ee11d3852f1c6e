import { Webhook as Verifier } from 'standardwebhooks';
import { expect, test } from 'vitest';
import { startReceiver, type Receiver } from './receiver.ts';
import { openStage } from './stage.ts';

const seqs = ({ received }: Receiver) => received.map(({ body }) => body.event.seq);
const poll = <T>(look: () => T) => expect.poll(look, { timeout: 60_000, interval: 5 });

test('each event of the chosen kinds and conversations is sent once, in order, with a signature that another library verifies', async () => {
  await using receiver = await startReceiver();
  await using stage = openStage({ allow: [receiver.host] });
  const webhooks = stage.open();
  stage.log().append('plan');
  await stage.pass(10);
  const { webhook, secret } = await stage.repository().create({
    url: receiver.url,
    on: ['message'],
    conversations: ['plan*'],
  });
  await webhooks.idle();
  const sent = [];
  for (let n = 0; n < 25; n++) {
    sent.push(stage.log().append('plan', { text: `No ${n}` }));
    stage.log().append('plan', { kind: 'todos' });
    stage.log().append('other');
  }
  await webhooks.idle();
  expect(receiver.received.map(({ body }) => body)).toEqual(
    sent.map((event) => ({ type: 'message', tenant: 'default', conversation: 'plan', event })),
  );
  const ids = new Set<unknown>();
  for (const { headers, text } of receiver.received) {
    new Verifier(secret).verify(text, headers as Record<string, string>);
    expect(() => new Verifier(secret).verify(`${text} `, headers as Record<string, string>)).toThrow();
    expect(headers['content-type']).toBe('application/json');
    ids.add(headers['webhook-id']);
  }
  expect(ids.size).toBe(25);
  await webhooks.close();
  expect(await stage.repository().get(webhook.id)).toMatchObject({
    status: { delivered: 25, refused: 0, failingSince: null, behind: 0 },
  });
});

test('threads of a conversation belong to it', async () => {
  await using receiver = await startReceiver();
  await using stage = openStage({ allow: [receiver.host] });
  const webhooks = stage.open();
  await stage.repository().create({ url: receiver.url, on: ['*'], conversations: ['plan'] });
  await webhooks.idle();
  stage.log().append('plan.d-0123456789ab');
  stage.log().append('planning');
  stage.log().append('plan', { kind: 'todos' });
  await webhooks.idle();
  const sent = receiver.received.map(({ body }) => `${body.conversation} ${body.type}`);
  expect(sent.toSorted()).toEqual(['plan todos', 'plan.d-0123456789ab message']);
});

test('a receiver that was down for an hour gets all missed events, in order', async () => {
  await using receiver = await startReceiver();
  await using stage = openStage({ allow: [receiver.host] });
  const webhooks = stage.open();
  const { webhook } = await stage.repository().create({ url: receiver.url, on: ['message'] });
  await webhooks.idle();
  await receiver.goDown();
  for (let n = 0; n < 10; n++) stage.log().append('plan');
  await poll(() => stage.outcomes.length).toBe(1);
  for (let minute = 0; minute < 60; minute++) {
    await stage.pass(60_000);
    stage.log().append('plan');
  }
  const { status } = (await stage.repository().get(webhook.id)) ?? {};
  expect(status).toMatchObject({ delivered: 0, behind: 1 });
  expect(status?.lastError).toContain('ECONNREFUSED');
  expect(status?.failingSince).toBeLessThanOrEqual(stage.clock.now() - 3_600_000);
  expect(status?.retryAt).toBeGreaterThan(stage.clock.now() - 60_000);
  await receiver.comeUp();
  await stage.passUntil(() => receiver.received.length === 70, 20_000);
  expect(seqs(receiver)).toEqual(Array.from({ length: 70 }, (_, n) => n + 1));
  // Pauses grow up to 5 minutes: there are few attempts in an hour.
  expect(stage.outcomes.filter((outcome) => outcome === 'failed').length).toBeLessThan(40);
  expect(stage.warnings.length).toBe(1);
});

test('events from a time without a process are sent by the next one, and no others again', async () => {
  await using receiver = await startReceiver();
  await using stage = openStage({ allow: [receiver.host] });
  const first = stage.open('p1');
  await stage.repository().create({ url: receiver.url, on: ['message'] });
  await first.idle();
  for (let n = 0; n < 3; n++) stage.log().append('plan');
  await first.idle();
  await first.close();
  for (let n = 0; n < 4; n++) stage.log().append('plan');
  stage.log().append('new');
  const second = stage.open('p2');
  await stage.pass(45_000);
  await second.idle();
  expect(receiver.received.length).toBe(8);
  expect(seqs(receiver).filter((_, at) => receiver.received[at]?.body.conversation === 'plan')).toEqual([
    1, 2, 3, 4, 5, 6, 7,
  ]);
});

test('one of two processes delivers; when it dies the other continues', async () => {
  await using receiver = await startReceiver();
  await using stage = openStage({ allow: [receiver.host] });
  const first = stage.open('p1');
  const second = stage.open('p2');
  await stage.repository().create({ url: receiver.url, on: ['message'] });
  for (let n = 0; n < 200; n++) {
    stage.log().append(`c${n % 7}`);
    if (n % 5 === 0) await stage.pass(1_000);
  }
  await Promise.all([first.idle(), second.idle()]);
  await poll(() => receiver.received.length).toBe(200);
  await first.close();
  stage.log().append('c1');
  await stage.pass(60_000);
  await poll(() => receiver.received.length).toBe(201);
  expect(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size).toBe(201);
});

test('an event answered with Retry-After is not sent before that time', async () => {
  await using receiver = await startReceiver((_, count) =>
    count === 1 ? { status: 429, headers: { 'retry-after': '120' } } : { status: 200 },
  );
  await using stage = openStage({ allow: [receiver.host] });
  const webhooks = stage.open();
  await stage.repository().create({ url: receiver.url, on: ['message'] });
  await webhooks.idle();
  stage.log().append('plan');
  await poll(() => stage.outcomes).toEqual(['failed']);
  await stage.pass(119_000);
  expect(receiver.received.length).toBe(1);
  await stage.pass(1_100);
  await poll(() => stage.outcomes).toEqual(['failed', 'taken']);
  expect(receiver.received.map(({ headers }) => headers['webhook-id'])).toEqual(
    Array(2).fill(receiver.received[0]?.headers['webhook-id']),
  );
});

test('an event refused five times is skipped, counted and named; the next one is sent', async () => {
  await using receiver = await startReceiver(({ body }) => ({ status: body.event.seq === 2 ? 422 : 200 }));
  await using stage = openStage({ allow: [receiver.host] });
  const webhooks = stage.open();
  const { webhook } = await stage.repository().create({ url: receiver.url, on: ['message'] });
  await webhooks.idle();
  for (let n = 0; n < 3; n++) stage.log().append('plan');
  await stage.passUntil(() => receiver.received.length === 7);
  expect(seqs(receiver)).toEqual([1, 2, 2, 2, 2, 2, 3]);
  await webhooks.close();
  expect((await stage.repository().get(webhook.id))?.status).toMatchObject({
    delivered: 2,
    refused: 1,
    lastRefused: { conversation: 'plan', seq: 2, reason: `${receiver.host} answered 422` },
    lastError: null,
  });
});

test('410 disables a webhook at once; a successful test enables it, and it continues where it stopped', async () => {
  await using receiver = await startReceiver(() => ({ status: 410 }));
  await using stage = openStage({ allow: [receiver.host] });
  const webhooks = stage.open();
  const repository = stage.repository();
  const { webhook } = await repository.create({ url: receiver.url, on: ['message'] });
  await webhooks.idle();
  for (let n = 0; n < 3; n++) stage.log().append('plan');
  await poll(() => stage.warnings.length).toBeGreaterThan(0);
  await stage.pass(600_000);
  expect(receiver.received.length).toBe(1);
  const disabled = await repository.get(webhook.id);
  expect(disabled?.reason).toBe(`${receiver.host} answered 410`);
  expect(await repository.test(webhook.id)).toMatchObject({ ok: false, status: 410 });
  receiver.answer = () => ({ status: 200 });
  expect(await repository.test(webhook.id)).toMatchObject({ ok: true, status: 200 });
  expect((await repository.get(webhook.id))?.disabledAt).toBeUndefined();
  await stage.passUntil(() => receiver.received.length === 6);
  expect(receiver.received.slice(3).map(({ body }) => body.event.seq)).toEqual([1, 2, 3]);
});

test('a webhook whose deliveries fail for too long is disabled, with a warning', async () => {
  await using receiver = await startReceiver(() => ({ status: 500 }));
  await using stage = openStage({ allow: [receiver.host], disableAfterMs: 3_600_000 });
  const webhooks = stage.open();
  const { webhook } = await stage.repository().create({ url: receiver.url, on: ['message'] });
  await webhooks.idle();
  const begun = stage.clock.now();
  stage.log().append('plan');
  await stage.passUntil(() => stage.warnings.length > 1, 20_000);
  expect(stage.warnings[1]).toContain(`webhook ${webhook.id} is disabled: no delivery has succeeded since`);
  const { disabledAt = 0, reason } = (await stage.repository().get(webhook.id)) ?? {};
  expect(reason).toContain('answered 500');
  expect(disabledAt - begun).toBeGreaterThanOrEqual(3_600_000);
  const tries = receiver.received.length;
  await stage.pass(600_000);
  expect(receiver.received.length).toBe(tries);
});

test('a late answer and a redirect are failures; the target of the redirect gets no request', async () => {
  await using elsewhere = await startReceiver();
  await using receiver = await startReceiver((_, count) =>
    count === 1 ? 'never' : { status: 307, headers: { location: elsewhere.url } },
  );
  await using stage = openStage({ allow: [receiver.host, elsewhere.host], timeoutMs: 1_500 });
  const webhooks = stage.open();
  const { webhook } = await stage.repository().create({ url: receiver.url, on: ['message'] });
  await webhooks.idle();
  stage.log().append('plan');
  await poll(() => stage.outcomes).toEqual(['failed']);
  await poll(async () => (await stage.repository().get(webhook.id))?.status.lastError).toContain(
    'took too long',
  );
  await stage.pass(1_000);
  await poll(() => stage.outcomes).toEqual(['failed', 'failed']);
  await poll(async () => (await stage.repository().get(webhook.id))?.status.lastError).toBe(
    `${receiver.host} answered 307: redirects are not followed`,
  );
  expect(elsewhere.received).toEqual([]);
});

test('a name that resolves to a private address gets no request, however long it is tried', async () => {
  await using stage = openStage({}, ['default'], {
    resolve: async () => [{ address: '10.1.2.3', family: 4 }],
  });
  const webhooks = stage.open();
  const { webhook } = await stage.repository().create({ url: 'http://intern.test/hook', on: ['message'] });
  await webhooks.idle();
  stage.log().append('plan');
  await poll(() => stage.outcomes).toEqual(['failed']);
  await poll(async () => (await stage.repository().get(webhook.id))?.status.lastError).toContain(
    'intern.test',
  );
});

test('a webhook gets only events of its tenant', async () => {
  await using receiver = await startReceiver();
  await using stage = openStage({ allow: [receiver.host] }, ['default', 'acme']);
  const webhooks = stage.open();
  const { webhook } = await stage.repository('acme').create({ url: receiver.url, on: ['*'] });
  await webhooks.idle();
  stage.log('default').append('plan', { text: 'not for them' });
  const event = stage.log('acme').append('plan', { text: 'for them' });
  await webhooks.idle();
  await stage.pass(60_000);
  const expected = { type: 'message', tenant: 'acme', conversation: 'plan', event };
  expect(receiver.received.map(({ body }) => body)).toEqual([expected]);
  expect(await stage.repository('default').list()).toEqual([]);
  for (const act of ['get', 'remove', 'rotate', 'test'] as const) {
    expect(await stage.repository('default')[act](webhook.id)).toBeNull();
  }
});

test('a removed webhook gets nothing more', async () => {
  await using receiver = await startReceiver();
  await using stage = openStage({ allow: [receiver.host] });
  const webhooks = stage.open();
  const { webhook } = await stage.repository().create({ url: receiver.url, on: ['message'] });
  await webhooks.idle();
  await stage.repository().remove(webhook.id);
  await webhooks.idle();
  stage.log().append('plan');
  await stage.pass(60_000);
  expect(receiver.received).toEqual([]);
});

test('a failing receiver delays no other', async () => {
  await using failing = await startReceiver(() => ({ status: 503 }));
  await using receiver = await startReceiver();
  await using stage = openStage({ allow: [receiver.host, failing.host] });
  const webhooks = stage.open();
  await stage.repository().create({ url: failing.url, on: ['message'] });
  await stage.repository().create({ url: receiver.url, on: ['message'] });
  await webhooks.idle();
  for (let n = 0; n < 20; n++) stage.log().append('plan');
  await poll(() => receiver.received.length).toBe(20);
  expect(failing.received.length).toBe(1);
});
