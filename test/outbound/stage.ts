import { systemClock } from '../../src/clock.ts';
import { openSafeFetch, type SafeFetchSettings } from '../../src/net/safe-fetch.ts';
import { memoryKeyValue, type KeyValue } from '../../src/key-value.ts';
import { openWebhooks, type Webhooks } from '../../src/outbound/deliver-webhooks.ts';
import { createWebhookBook, type WebhookBook } from '../../src/outbound/webhook-book.ts';
import type { WebhookSettings } from '../../src/outbound/webhook-settings.ts';
import { webhookSecret } from '../../src/outbound/webhook-signature.ts';
import { createFakeClock, type FakeClock } from '../../src/testing/fake-clock.ts';
import { type FakeLog, fakeLog } from './fake-log.ts';

export interface Stage extends AsyncDisposable {
  clock: FakeClock;
  log(tenant?: string): FakeLog;
  notes(tenant?: string): KeyValue;
  book(tenant?: string): WebhookBook;
  /** One more process that delivers. */
  open(owner?: string): Webhooks;
  pass(ms: number): Promise<void>;
  /** Moves time on as fast as real requests come and go, until something is so. */
  passUntil(isSo: () => boolean, stepMs?: number): Promise<void>;
  warnings: string[];
  outcomes: string[];
}

const STORE_SECRET = 'of the store';

/** Tenants with logs and notes in memory, and real requests. */
export function openStage(
  settings: WebhookSettings = {},
  tenants: readonly string[] = ['default'],
  names: Pick<SafeFetchSettings, 'resolve'> = {},
): Stage {
  const clock = createFakeClock(Date.now());
  const logs = new Map(tenants.map((tenant) => [tenant, fakeLog(clock, tenant)]));
  const notes = new Map(tenants.map((tenant) => [tenant, memoryKeyValue()]));
  const fetch = openSafeFetch({ allow: settings.allow, ...names });
  const processes: Webhooks[] = [];
  const warnings: string[] = [];
  const outcomes: string[] = [];
  const secretOf = (id: string, generation: number) => webhookSecret(STORE_SECRET, id, generation);
  const log = (tenant = 'default') => given(logs.get(tenant));
  const keyValueOf = (tenant = 'default') => given(notes.get(tenant));
  return {
    clock,
    log,
    notes: keyValueOf,
    warnings,
    outcomes,
    book(tenant = 'default') {
      const onChange = () => processes.forEach((each) => each.changed(tenant));
      return createWebhookBook({
        notes: keyValueOf(tenant),
        tenant,
        clock,
        secretOf,
        fetch,
        settings,
        onChange,
      });
    },
    open(owner = 'p1') {
      const opened = openWebhooks({
        troupeOf: (tenant) => log(tenant).troupe,
        keyValueOf,
        tenants: async () => tenants,
        settings,
        fetch,
        secretOf,
        clock,
        random: () => 0.5,
        owner,
        onWarning: (error, where) => warnings.push(`${where}: ${String(error)}`),
        onAnswer: (_, outcome) => outcomes.push(outcome),
      });
      processes.push(opened);
      return opened;
    },
    pass: (ms) => clock.advance(ms),
    async passUntil(isSo, stepMs = 500) {
      const tooLate = performance.now() + 30_000;
      while (!isSo()) {
        if (performance.now() > tooLate) throw new Error('it did not come to that');
        await clock.advance(stepMs);
        await systemClock.sleep(isSo() ? 0 : 1);
      }
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(processes.map((each) => each.close()));
      await fetch.close();
    },
  };
}

function given<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('there is no such tenant on this stage');
  return value;
}
