import { systemClock } from '../../src/base/clock.ts';
import { openSafeFetch, type SafeFetchSettings } from '../../src/base/net/safe-fetch.ts';
import { memoryKeyValue, type KeyValue } from '../../src/base/key-value.ts';
import { createWebhooks, type Webhooks } from '../../src/library/integrations/webhooks.ts';
import {
  createWebhookRepository,
  type WebhookRepository,
} from '../../src/library/integrations/webhook-repository.ts';
import { webhookSecret } from '../../src/library/integrations/webhook.ts';
import type { WebhookSettings } from '../../src/library/integrations/webhook-settings.ts';
import { createFakeClock, type FakeClock } from '../../packages/testing/src/fake-clock.ts';
import { type FakeLog, fakeLog } from './fake-log.ts';

export interface Stage extends AsyncDisposable {
  clock: FakeClock;
  log(tenant?: string): FakeLog;
  keyValue(tenant?: string): KeyValue;
  repository(tenant?: string): WebhookRepository;
  /** Starts one more delivering process. */
  open(owner?: string): Webhooks;
  pass(ms: number): Promise<void>;
  /** Advances the clock as fast as real requests are answered, until the condition holds. */
  passUntil(isSo: () => boolean, stepMs?: number): Promise<void>;
  warnings: string[];
  outcomes: string[];
}

const STORE_SECRET = 'of the store';

/** Tenants with logs and entries in memory, and real requests. */
export function openStage(
  settings: WebhookSettings = {},
  tenants: readonly string[] = ['default'],
  names: Pick<SafeFetchSettings, 'resolve'> = {},
): Stage {
  const clock = createFakeClock(Date.now());
  const logs = new Map(tenants.map((tenant) => [tenant, fakeLog(clock, tenant)]));
  const keyValue = new Map(tenants.map((tenant) => [tenant, memoryKeyValue()]));
  const fetch = openSafeFetch({ allow: settings.allow, ...names });
  const processes: Webhooks[] = [];
  const warnings: string[] = [];
  const outcomes: string[] = [];
  const secretOf = (id: string, generation: number) => webhookSecret(STORE_SECRET, id, generation);
  const log = (tenant = 'default') => given(logs.get(tenant));
  const keyValueOf = (tenant = 'default') => given(keyValue.get(tenant));
  return {
    clock,
    log,
    keyValue: keyValueOf,
    warnings,
    outcomes,
    repository(tenant = 'default') {
      const onChange = () => processes.forEach((each) => each.changed(tenant));
      return createWebhookRepository({
        keyValue: keyValueOf(tenant),
        tenant,
        clock,
        secretOf,
        fetch,
        settings,
        onChange,
      });
    },
    open(owner = 'p1') {
      const opened = createWebhooks({ settings, fetch, secretOf });
      void opened.start({
        troupeOf: (tenant) => log(tenant).troupe,
        keyValueOf,
        tenants: async () => tenants,
        clock,
        outgoing: {
          check: () => {},
          post: () => Promise.reject(new Error('webhooks send with their own fetch')),
          giveUpAfterMs: 0,
        },
        random: () => 0.5,
        env: {},
        owner,
        metrics: {
          count: (name, labels) => {
            if (name === 'webhook_deliveries' && 'outcome' in labels) outcomes.push(labels.outcome);
          },
        },
        onWarning: (error, where) => warnings.push(`${where}: ${String(error)}`),
      });
      processes.push(opened);
      return opened;
    },
    pass: (ms) => clock.advance(ms),
    async passUntil(isSo, stepMs = 500) {
      const tooLate = performance.now() + 30_000;
      while (!isSo()) {
        if (performance.now() > tooLate) throw new Error('the condition did not become true within 30 s');
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
