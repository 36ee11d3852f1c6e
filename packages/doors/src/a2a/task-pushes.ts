import type { Integration, IntegrationBase, IntegrationHost } from '../troupe.ts';
import { createTaskPushRepository, readTaskPushes, type TaskPushRepository } from './task-push.ts';
import { TenantPushes } from './tenant-pushes.ts';

export interface TaskPushes extends Integration {
  /** The receivers of a tenant's tasks. Changes by other processes are noticed within 20 s. */
  repositoryOf(tenant: string): TaskPushRepository;
}

const LOOK_MS = 20_000;

/** Sends the states of tasks of A2A to their receivers, for all tenants that have any. */
export function createTaskPushes(): TaskPushes {
  const running = new Map<string, TenantPushes>();
  const closing = new AbortController();
  let base: IntegrationBase | null = null;
  let host: IntegrationHost | null = null;
  let run: Promise<void> = Promise.resolve();
  /** One after the other: an older list replaces no newer one. */
  let looks: Promise<void> = Promise.resolve();

  async function look({ keyValueOf, onWarning }: IntegrationHost, tenant: string): Promise<void> {
    try {
      const pushes = await readTaskPushes(keyValueOf(tenant));
      const known = running.get(tenant);
      if (closing.signal.aborted || !host || (!known && pushes.length === 0)) return;
      const tenantPushes = known ?? new TenantPushes(tenant, host);
      running.set(tenant, tenantPushes);
      tenantPushes.update(pushes);
    } catch (error) {
      onWarning(error, `notifications of ${tenant}`);
    }
  }

  async function lookAround(at: IntegrationHost): Promise<void> {
    while (!closing.signal.aborted) {
      const tenants = await at.tenants().catch((error: unknown) => {
        at.onWarning(error, 'notifications: the list of tenants');
        return [];
      });
      for (const tenant of tenants) await (looks = looks.then(() => look(at, tenant)));
      await at.clock.sleep(LOOK_MS, closing.signal, 'upkeep');
    }
  }

  function changed(tenant: string): void {
    const at = host;
    if (at && !closing.signal.aborted) looks = looks.then(() => look(at, tenant));
  }

  return {
    name: 'a2a-push',
    attach(given) {
      base = given;
    },
    repositoryOf(tenant) {
      if (!base) throw new Error('the door is not open in this troupe');
      const { clock, outgoing, keyValueOf } = base;
      const keyValue = keyValueOf(tenant);
      return createTaskPushRepository({ keyValue, clock, outgoing, onChange: () => changed(tenant) });
    },
    async start(given) {
      host = given;
      run = lookAround(given);
    },
    async close() {
      closing.abort();
      await run;
      await looks;
      await Promise.all([...running.values()].map((each) => each.close()));
    },
  };
}
