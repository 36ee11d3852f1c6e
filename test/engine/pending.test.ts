import { expect, test } from 'vitest';
import { ANA, scripted } from '../http/harness.ts';
import { openTroupe } from '../support/mode.ts';

const SLOW = scripted('slow', [{ reply: 'at last', delayMs: 1_500 }]);

test('a tenant with too much pending work is refused more, while others are served', async () => {
  await using troupe = await openTroupe(
    { agents: [SLOW], limits: { pendingPerTenant: 3 } },
    { onWarning: () => {}, concurrency: 1 },
  );
  const acme = troupe.forTenant('acme');
  const say = (of: typeof acme, conversation: string, id?: string) =>
    of.send(conversation, { author: ANA, to: ['slow'], content: 'x', ...(id && { id: id as never }) });
  await say(acme, 'c0', 'first');
  const refused = async () => {
    for (let n = 1; n < 200; n++) {
      try {
        await say(acme, `c${n}`);
      } catch (error) {
        return error;
      }
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    return null;
  };
  expect(await refused()).toMatchObject({
    code: 'tenant_busy',
    policy: 'retry',
    data: { limit: 3, retryAfterMs: expect.any(Number) },
  });
  // A repeated message adds no work, a message without an addressee wakes nobody, and each tenant has its own count.
  expect(await say(acme, 'c0', 'first')).toMatchObject({ kind: 'exists' });
  await acme.send('c0', { author: ANA, replyTo: 'first' as never, content: 'for nobody' });
  expect(await say(troupe.forTenant('zeta'), 'c1')).toMatchObject({ kind: 'appended' });
  expect(await acme.queues()).toMatchObject({ waiting: expect.any(Number), active: 0 });
});
