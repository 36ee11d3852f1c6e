import { Webhook as Verifier } from 'standardwebhooks';
import { expect, test } from 'vitest';
import { type Received, startReceiver } from './receiver.ts';
import { openStage } from './stage.ts';
import { rotate, signingGenerations, Webhook } from '../../src/library/integrations/webhook.ts';

const DAY_MS = 86_400_000;

test('a secret is returned by create and rotate, and is stored and shown nowhere else', async () => {
  await using receiver = await startReceiver(() => ({ status: 500 }));
  await using stage = openStage({ allow: [receiver.host] });
  const stored: string[] = [];
  const keyValue = stage.keyValue();
  const compareAndSet = keyValue.compareAndSet.bind(keyValue);
  keyValue.compareAndSet = (key, from, to) => {
    stored.push(`${key} ${to}`);
    return compareAndSet(key, from, to);
  };
  const webhooks = stage.open();
  const repository = stage.repository();
  const first = await repository.create({ url: `${receiver.url}?token=t0p`, on: ['message'] });
  const second = await repository.rotate(first.webhook.id);
  await webhooks.idle();
  stage.log().append('plan');
  await expect.poll(() => stage.warnings.length).toBe(1);
  const secrets = [first.secret, second?.secret ?? ''];
  for (const secret of secrets) expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
  expect(new Set(secrets).size).toBe(2);
  await webhooks.close();
  const shown = JSON.stringify([
    await repository.list(),
    await repository.get(first.webhook.id),
    stage.warnings,
    stored,
  ]);
  for (const secret of secrets) expect(shown).not.toContain(secret.slice('whsec_'.length));
  expect(stage.warnings.join()).not.toContain('t0p');
  expect((await repository.list())[0]?.status.lastError).not.toContain('t0p');
});

test('after a rotation the old secret also signs for 24 hours, and not longer', async () => {
  await using receiver = await startReceiver();
  await using stage = openStage({ allow: [receiver.host] });
  const repository = stage.repository();
  const { webhook, secret: old } = await repository.create({ url: receiver.url, on: ['message'] });
  const rotated = await repository.rotate(webhook.id);
  if (!rotated) throw new Error('it is there');
  const verifies = (secret: string, at: number): boolean => {
    const { text = '', headers = {} }: Partial<Received> = receiver.received[at] ?? {};
    try {
      // The library checks the time by the clock of this machine, not by that of the test.
      const timestamp = Number(headers['webhook-timestamp']) * 1_000;
      const signature = new Verifier(secret).sign(String(headers['webhook-id']), new Date(timestamp), text);
      return String(headers['webhook-signature']).split(' ').includes(signature);
    } catch {
      return false;
    }
  };
  expect(await repository.test(webhook.id)).toMatchObject({ ok: true, status: 204 });
  expect(receiver.received[0]?.body).toEqual({ type: 'ping', tenant: 'default', webhook: webhook.id });
  expect([verifies(old, 0), verifies(rotated.secret, 0)]).toEqual([true, true]);
  await stage.pass(DAY_MS);
  await repository.test(webhook.id);
  expect([verifies(old, 1), verifies(rotated.secret, 1)]).toEqual([false, true]);
});

test('each of several secrets signs until a day after its replacement, at most four old ones', () => {
  const made = {
    id: 'w',
    url: 'https://example.org/',
    on: ['*' as const],
    createdAt: 0,
    generation: 1,
    rotations: [],
  };
  const twice = rotate(rotate(made, 1_000), 5_000);
  expect(signingGenerations(twice, 5_000)).toEqual([3, 2, 1]);
  expect(signingGenerations(twice, DAY_MS + 1_000)).toEqual([3, 2]);
  expect(signingGenerations(twice, DAY_MS + 5_000)).toEqual([3]);
  const often = Array.from({ length: 6 }).reduce<typeof twice>((each) => rotate(each, 6_000), twice);
  expect(signingGenerations(Webhook.parse(often), 6_000)).toEqual([9, 8, 7, 6, 5]);
});

test('a rotation by another process is noticed after the first refusal', async () => {
  await using receiver = await startReceiver();
  await using stage = openStage({ allow: [receiver.host] });
  const other = stage.repository();
  const webhooks = stage.open();
  const { webhook } = await other.create({ url: receiver.url, on: ['message'] });
  await webhooks.idle();
  // The delivering process gets no notice: only the stored webhook has changed.
  const { createWebhookRepository } = await import('../../src/library/integrations/webhook-repository.ts');
  const { webhookSecret } = await import('../../src/library/integrations/webhook.ts');
  const quiet = createWebhookRepository({
    keyValue: stage.keyValue(),
    tenant: 'default',
    clock: stage.clock,
    secretOf: (id, generation) => webhookSecret('of the store', id, generation),
    fetch: () => Promise.reject(new Error('not called')),
  });
  const rotated = await quiet.rotate(webhook.id);
  const verifier = new Verifier(rotated?.secret ?? '');
  receiver.answer = ({ text, headers }) => {
    try {
      verifier.verify(text, headers as Record<string, string>);
      return { status: 200 };
    } catch {
      return { status: 401 };
    }
  };
  stage.log().append('plan');
  await expect.poll(() => stage.outcomes).toEqual(['refused']);
  await stage.pass(1_000);
  await expect.poll(() => stage.outcomes).toEqual(['refused', 'taken']);
});

test.each([
  ['ftp://example.org/', 'config_invalid'],
  ['not a url', 'config_invalid'],
  ['https://ana:secret@example.org/', 'config_invalid'],
  ['http://127.0.0.1/', 'address_refused'],
  ['http://[::1]/', 'address_refused'],
  ['http://2130706433/', 'address_refused'],
  ['http://169.254.169.254/latest', 'address_refused'],
  ['https://example.org:8443/', 'address_refused'],
  ['https://localhost/x', 'address_refused'],
  ['http://LOCALHOST./x', 'address_refused'],
  ['https://foo.localhost/', 'address_refused'],
])('%s is refused as %s, and nothing is stored', async (url, code) => {
  await using stage = openStage();
  const refused = stage.repository().create({ url, on: ['message'] });
  await expect(refused).rejects.toMatchObject({ code });
  await expect(refused).rejects.not.toThrow(/secret/);
  expect(await stage.repository().list()).toEqual([]);
});

test('localhost is allowed by name and port, or by its address in a range', async () => {
  for (const [allow, url] of [
    ['localhost:9000', 'http://localhost:9000/'],
    ['127.0.0.0/8', 'http://localhost/'],
    ['::1', 'https://a.localhost/'],
  ] as const) {
    await using stage = openStage({ allow: [allow] });
    expect(await stage.repository().create({ url, on: ['*'] })).toMatchObject({ webhook: { url } });
  }
  await using stage = openStage({ allow: ['localhost', '10.0.0.0/8'] });
  const refused = stage.repository().create({ url: 'http://localhost/', on: ['*'] });
  await expect(refused).rejects.toMatchObject({ code: 'address_refused' });
});

test.each([
  [{ on: [] }],
  [{ on: ['messages'] }],
  [{ on: ['message'], conversations: ['$where'] }],
  [{ on: ['message'], extra: 1 }],
  [{ on: { $gt: '' } }],
])('%j is not a webhook', async (given) => {
  await using stage = openStage();
  const asked = { url: 'https://example.org/', ...given } as never;
  await expect(stage.repository().create(asked)).rejects.toMatchObject({ code: 'config_invalid' });
});

test('a tenant has at most its maximum of webhooks, also when they are created at once', async () => {
  await using stage = openStage({ maxPerTenant: 5 });
  const repository = stage.repository();
  const made = await Promise.allSettled(
    Array.from({ length: 12 }, () => repository.create({ url: 'https://example.org/', on: ['*'] })),
  );
  expect(made.filter(({ status }) => status === 'fulfilled').length).toBe(5);
  expect(made.find(({ status }) => status === 'rejected')).toMatchObject({
    reason: { code: 'command_refused' },
  });
  expect((await repository.list()).length).toBe(5);
});
