import { expect, test } from 'vitest';
import { heldIn } from '../../src/actors/features/budget/accounts.ts';
import { systemClock } from '../../src/base/clock.ts';
import { NO_METRICS } from '../../src/events/metrics.ts';
import { ACME, counted, accountsOn, placeOf, STORES } from './stage.ts';

const CENT = 10_000;
const CALLS = 100;

for (const [name, open] of STORES) {
  for (const processes of [1, 2, 10]) {
    test(`${name}: ${CALLS} calls of ${processes} processes race for the last cent, which is spent once`, async () => {
      const store = await open();
      const caps = { tenant: { usd: 1 } };
      const all = Array.from({ length: processes }, () => counted(store));
      let retries = 0;
      const metrics = {
        ...NO_METRICS,
        count: (kind: string) => void (retries += kind === 'budget_retries' ? 1 : 0),
      };
      const allAccounts = all.map((notes) => accountsOn(notes, caps, { clock: systemClock, metrics }));
      const first = allAccounts[0]!;
      const spent = await first.reserve(placeOf(), { id: 'before', tokens: 0, microUsd: 99 * CENT });
      if (!spent.ok) throw new Error(spent.refusal.message);
      await first.settle(spent.ticket, { tokens: 0, microUsd: 99 * CENT });
      for (const each of all) Object.assign(each, { reads: 0, writes: 0 });
      const amount = CENT / 20 + 1;
      const began = performance.now();
      const answers = await Promise.all(
        Array.from({ length: CALLS }, (_, index) =>
          allAccounts[index % processes]!.reserve(placeOf('writer', `talk${index}`), {
            id: `call${index}`,
            tokens: 1,
            microUsd: amount,
          }),
        ),
      );
      const ms = performance.now() - began;
      const admitted = answers.filter(({ ok }) => ok).length;
      expect(admitted).toBe(19);
      const account = await first.look(ACME, { kind: 'tenant', cap: caps.tenant });
      expect(account.spent.microUsd).toBe(99 * CENT);
      expect(heldIn(account).microUsd).toBe(19 * amount);
      const writes = all.reduce((sum, each) => sum + each.writes, 0);
      const reads = all.reduce((sum, each) => sum + each.reads, 0);
      console.log(
        `budget, ${name}, ${processes} process(es): ${CALLS} reserves, ${admitted} admitted: ${writes} writes (${writes / CALLS} per reserve), ${reads} reads, ${retries} lost, ${ms.toFixed(1)} ms`,
      );
      await store.close();
    });
  }

  test(`${name}: 100 concurrent calls in two processes need few writes`, async () => {
    const store = await open();
    const caps = { tenant: { tokens: 10_000_000 } };
    const all = [counted(store), counted(store)];
    const allAccounts = all.map((notes) => accountsOn(notes, caps, { clock: systemClock }));
    await Promise.all(
      Array.from({ length: CALLS }, async (_, index) => {
        const accounts = allAccounts[index % 2]!;
        const hold = { id: `call${index}`, tokens: 5_000, microUsd: 10 };
        const reserved = await accounts.reserve(placeOf(), hold);
        if (!reserved.ok) throw new Error(reserved.refusal.message);
        await systemClock.sleep(index % 10);
        await accounts.settle(reserved.ticket, { tokens: 3_000, microUsd: 7 });
      }),
    );
    const account = await allAccounts[0]!.look(ACME, { kind: 'tenant', cap: caps.tenant });
    expect(account).toEqual({ spent: { tokens: 300_000, microUsd: 700 }, held: {} });
    const writes = all.reduce((sum, each) => sum + each.writes, 0);
    console.log(`budget, ${name}: ${CALLS} calls reserved and settled: ${writes} writes`);
    expect(writes).toBeLessThan(CALLS);
    await store.close();
  });
}
