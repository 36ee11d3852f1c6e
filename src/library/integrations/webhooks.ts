import type { Integration, IntegrationHost } from './integration.ts';
import { followLog, type LogFollower } from './follow-log.ts';
import type { PostParts } from './post-webhook.ts';
import { Signal } from './signal.ts';
import { readWebhooks, type Webhook } from './webhook.ts';
import { createWebhookFollower, type WebhookFollower } from './webhook-follower.ts';
import type { WebhookSettings } from './webhook-settings.ts';

export interface WebhooksParts extends Pick<PostParts, 'fetch' | 'secretOf'> {
  settings?: WebhookSettings | undefined;
}

export interface Webhooks extends Integration {
  /** Reports that this process changed webhooks of a tenant. Changes by others are noticed within 20 s. */
  changed(tenant: string): void;
  /** Resolves when this process has noticed all changes and has nothing to deliver. */
  idle(): Promise<void>;
}

interface Running {
  tenant: string;
  follower: WebhookFollower;
  log: LogFollower;
}

const LOOK_MS = 20_000;

/**
 * Delivers events to the webhooks of all tenants.
 *  D1  Each enabled webhook has one follower in each process; claims make one process deliver.
 *  D2  A process that has noticed that a webhook was removed or disabled sends nothing more to it.
 *  D3  A tenant whose webhooks cannot be read delays no other tenant; its running followers go on.
 */
export function createWebhooks(parts: WebhooksParts): Webhooks {
  let delivery: Delivery | null = null;
  return {
    name: 'webhooks',
    async start(host) {
      delivery = new Delivery(parts, host);
    },
    changed: (tenant) => delivery?.changed(tenant),
    idle: async () => delivery?.idle(),
    close: async () => delivery?.close(),
  };
}

class Delivery {
  readonly #parts: WebhooksParts;
  readonly #host: IntegrationHost;
  readonly #running = new Map<string, Running>();
  readonly #closings = new Set<Promise<void>>();
  readonly #changed = new Set<string>();
  readonly #signal = new Signal();
  readonly #idlers = new Set<() => void>();
  readonly #run: Promise<void>;
  #isClosing = false;
  #isLooking = true;

  constructor(parts: WebhooksParts, host: IntegrationHost) {
    this.#parts = parts;
    this.#host = host;
    this.#run = this.#work();
  }

  changed(tenant: string): void {
    this.#changed.add(tenant);
    this.#signal.raise();
  }

  async idle(): Promise<void> {
    while (!this.#isClosing && (this.#isLooking || this.#changed.size > 0)) {
      await new Promise<void>((resolve) => this.#idlers.add(resolve));
    }
    await Promise.all([...this.#running.values()].map(({ log }) => log.idle()));
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    this.#signal.raise();
    await this.#run;
    for (const [id, each] of this.#running) this.#stop(id, each);
    await Promise.all(this.#closings);
  }

  async #work(): Promise<void> {
    const { clock } = this.#host;
    let lookAt = 0;
    while (!this.#isClosing) {
      this.#isLooking = true;
      const isDue = clock.now() >= lookAt;
      const tenants = isDue ? await this.#allTenants() : [...this.#changed];
      for (const tenant of tenants) {
        this.#changed.delete(tenant);
        if (!this.#isClosing) await this.#look(tenant);
      }
      if (isDue) {
        lookAt = clock.now() + LOOK_MS;
        for (const { follower } of this.#running.values()) await follower.flush();
      }
      if (this.#changed.size > 0) continue;
      this.#isLooking = false;
      for (const wake of this.#idlers) wake();
      this.#idlers.clear();
      if (!this.#isClosing) await this.#signal.wait(clock, lookAt - clock.now());
    }
  }

  async #allTenants(): Promise<Iterable<string>> {
    try {
      return new Set([...(await this.#host.tenants()), ...this.#changed]);
    } catch (error) {
      this.#host.onWarning(error, 'webhooks: the list of tenants');
      return [...this.#changed];
    }
  }

  /** Starts, updates and stops followers until they match the stored webhooks of a tenant. */
  async #look(tenant: string): Promise<void> {
    try {
      const webhooks = await readWebhooks(this.#host.keyValueOf(tenant));
      const enabled = new Map(
        webhooks.flatMap((each) => (each.disabledAt === undefined ? [[each.id, each]] : [])),
      );
      for (const [id, each] of this.#running) {
        if (each.tenant === tenant && !enabled.has(id)) this.#stop(id, each);
      }
      for (const [id, webhook] of enabled) {
        const known = this.#running.get(id);
        if (known) known.follower.update(webhook);
        else this.#running.set(id, this.#start(tenant, webhook));
      }
    } catch (error) {
      this.#host.onWarning(error, `webhooks of ${tenant}`);
    }
  }

  #start(tenant: string, webhook: Webhook): Running {
    const { fetch, secretOf, settings = {} } = this.#parts;
    const { clock, random, owner, metrics, onWarning } = this.#host;
    const keyValue = this.#host.keyValueOf(tenant);
    const follower = createWebhookFollower(webhook, {
      fetch,
      secretOf,
      clock,
      keyValue,
      tenant,
      timeoutMs: settings.timeoutMs,
      disableAfterMs: settings.disableAfterMs,
      onWarning,
      onDisabled: () => this.changed(tenant),
      onAnswer: (outcome) => metrics.count('webhook_deliveries', { tenant, outcome }),
    });
    const troupe = this.#host.troupeOf(tenant);
    return {
      tenant,
      follower,
      log: followLog({ troupe, keyValue, clock, random, owner, onWarning }, follower),
    };
  }

  #stop(id: string, { log, follower }: Running): void {
    this.#running.delete(id);
    const closing = log
      .close()
      .then(() => follower.flush())
      .finally(() => this.#closings.delete(closing));
    this.#closings.add(closing);
  }
}
