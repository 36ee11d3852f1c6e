import { createHash } from 'node:crypto';
import type { Integration, IntegrationHost } from './integration.ts';
import { followLog, type LogFollower, Signal } from './follow-log.ts';
import {
  type PostParts,
  readWebhooks,
  type Webhook,
  type PostAnswer,
  postWebhook,
  changeWebhook,
  changeWebhookStatus,
  NOT_FAILING,
  readWebhook,
  wantsConversation,
  wantsKind,
  type WebhookStatus,
} from './webhook.ts';
import { type WebhookSettings, DEFAULT_DISABLE_AFTER_MS } from './webhook-settings.ts';
import type { Clock } from '../../base/clock.ts';
import type { Event } from '../../events/index.ts';
import type { KeyValue } from '../../base/key-value.ts';
import { type Follower, type FollowerStatus, MAX_ASKED_MS, RetryAfter } from './deliver.ts';

interface WebhooksParts extends Pick<PostParts, 'fetch' | 'secretOf'> {
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

interface WebhookFollowerParts extends PostParts {
  keyValue: KeyValue;
  tenant: string;
  disableAfterMs?: number | undefined;
  onWarning: (error: unknown, where: string) => void;
  /** Called when this process has disabled the webhook. */
  onDisabled: () => void;
  onAnswer: (outcome: PostAnswer['outcome']) => void;
}

interface WebhookFollower extends Follower {
  /** Replaces the webhook with its stored version. */
  update(webhook: Webhook): void;
  /** Writes the counters. */
  flush(): Promise<void>;
}

/** Attempts for a refused event before it is skipped. */
const MAX_REFUSALS = 5;

/**
 * Sends the events of a tenant to one webhook.
 *  W1  2xx: taken. 410: the webhook is disabled. Other 4xx: refused; after 5 attempts the event is skipped and counted. After
 *      any other answer the event is retried, after the pause of the follower or of `Retry-After`.
 *  W2  After `disableAfterMs` of failures without a success the webhook is disabled. Time without attempts does not count.
 *      The cursors stay: once enabled again, it continues with the event at which it stopped.
 *  W3  An attempt after a failure reads the stored webhook: another process may have changed its secret.
 */
function createWebhookFollower(first: Webhook, parts: WebhookFollowerParts): WebhookFollower {
  const { keyValue, tenant, clock, disableAfterMs = DEFAULT_DISABLE_AFTER_MS, onWarning } = parts;
  const { id } = first;
  let webhook = first;
  /** Attempts by refused event: at most one event per conversation under way. */
  const refusals = new Map<string, number>();
  let isFailing = false;
  const status = new StatusKeeper(keyValue, id, clock, onWarning);

  async function disable(reason: string): Promise<never> {
    const at = clock.now();
    await changeWebhook(keyValue, id, (stored) => ({ ...stored, disabledAt: at, reason }));
    parts.onAnswer('gone');
    onWarning(new Error(`webhook ${id} is disabled: ${reason}`), `webhook/${id}`);
    parts.onDisabled();
    throw new Error(`it is disabled: ${reason}`);
  }

  async function fail(why: string, retryAfterMs: number | null): Promise<never> {
    isFailing = true;
    const since = await status.failed(why);
    if (clock.now() - since >= disableAfterMs) {
      await disable(
        `no delivery has succeeded since ${new Date(since).toISOString()}; the last failed: ${why}`,
      );
    }
    throw retryAfterMs === null ? new Error(why) : new RetryAfter(retryAfterMs, why);
  }

  async function deliver(event: Event, signal: AbortSignal): Promise<void> {
    if (isFailing) webhook = (await readWebhook(keyValue, id)) ?? webhook;
    if (webhook.disabledAt !== undefined) throw new Error(`it is disabled: ${webhook.reason ?? ''}`);
    const payload = { type: event.kind, tenant, conversation: event.conversation, event };
    const message = { id: messageId(webhook, event), payload };
    const answer = await postWebhook(webhook, message, parts, signal);
    if (answer.outcome === 'gone') return disable(answer.why);
    parts.onAnswer(answer.outcome);
    if (answer.outcome === 'failed') return fail(answer.why, answer.retryAfterMs);
    if (answer.outcome === 'refused') {
      const tries = (refusals.get(message.id) ?? 0) + 1;
      refusals.set(message.id, tries);
      if (tries < MAX_REFUSALS) return fail(answer.why, null);
      refusals.delete(message.id);
      return status.refused(event, answer.why);
    }
    isFailing = false;
    refusals.delete(message.id);
    await status.delivered();
  }

  return {
    name: `webhook/${id}`,
    since: first.createdAt,
    wants: (conversation) => wantsConversation(first, conversation),
    cares: (event) => wantsKind(first, event),
    deliver,
    onFailed: (failure) => void status.waits(failure),
    update: (stored) => {
      webhook = stored;
    },
    flush: () => status.flush(),
  };
}

/** Id of a delivery, the same for each attempt. Events of a deleted and recreated conversation have other ids. */
function messageId({ id }: Webhook, { tenant, conversation, seq, at, id: event }: Event): string {
  const name = JSON.stringify([id, tenant, conversation, seq, event, at]);
  return `msg_${createHash('sha256').update(name).digest('hex').slice(0, 32)}`;
}

/** Successes are written together, at most once in this time. */
const FLUSH_MS = 5_000;
/** Longer times without a failure had no attempts, ms: there was nothing to send, or no process ran. */
const QUIET_MS = 2 * MAX_ASKED_MS;

/**
 * The stored status of one webhook. Failures and refusals are written at once, deliveries every few seconds: a crash loses
 * the counts since the last write.
 */
class StatusKeeper {
  readonly #keyValue: KeyValue;
  readonly #id: string;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #onWarning: (error: unknown, where: string) => void;
  #uncounted = 0;
  #deliveredAt = 0;
  #flushedAt = 0;
  /** True if the stored status is failing; null if unknown. */
  #isFailing: boolean | null = null;
  /** Writes are sequential. */
  #written: Promise<unknown> = Promise.resolve();

  constructor(
    keyValue: KeyValue,
    id: string,
    clock: Pick<Clock, 'now'>,
    onWarning: (error: unknown, where: string) => void,
  ) {
    this.#keyValue = keyValue;
    this.#id = id;
    this.#clock = clock;
    this.#onWarning = onWarning;
  }

  async delivered(): Promise<void> {
    this.#uncounted += 1;
    this.#deliveredAt = this.#clock.now();
    const isDue = this.#isFailing !== false || this.#deliveredAt - this.#flushedAt >= FLUSH_MS;
    if (isDue) await this.flush();
  }

  /** Returns the time since which attempts have failed. Time without attempts does not count. */
  async failed(why: string): Promise<number> {
    const now = this.#clock.now();
    this.#isFailing = true;
    const status = await this.#change((stored) => {
      const isSameFailure = stored.failedAt !== null && now - stored.failedAt <= QUIET_MS;
      const failingSince = isSameFailure ? (stored.failingSince ?? now) : now;
      return { ...stored, failingSince, failedAt: now, lastError: why };
    });
    return status?.failingSince ?? now;
  }

  async waits({ behind, retryAt }: FollowerStatus): Promise<void> {
    await this.#change((stored) => ({ ...stored, behind, retryAt }));
  }

  /** Ends no failure: a receiver that refuses everything is failing. */
  async refused({ conversation, seq, id }: Event, reason: string): Promise<void> {
    const lastRefused = { conversation, seq, event: id, reason, at: this.#clock.now() };
    await this.#change((stored) => ({ ...stored, refused: stored.refused + 1, lastRefused, retryAt: null }));
  }

  /** Resolves when all earlier changes are written. */
  async flush(): Promise<void> {
    const [count, deliveredAt] = [this.#uncounted, this.#deliveredAt];
    if (count === 0) return void (await this.#written);
    this.#uncounted = 0;
    this.#flushedAt = this.#clock.now();
    this.#isFailing = false;
    await this.#change((stored) => ({
      ...stored,
      ...NOT_FAILING,
      behind: 0,
      delivered: stored.delivered + count,
      deliveredAt,
    }));
  }

  /** A failed write is reported and stops no delivery. */
  #change(apply: (status: WebhookStatus) => WebhookStatus): Promise<WebhookStatus | null> {
    const written = this.#written.then(async () => {
      try {
        return await changeWebhookStatus(this.#keyValue, this.#id, apply);
      } catch (error) {
        this.#onWarning(error, `status of webhook/${this.#id}`);
        return null;
      }
    });
    this.#written = written;
    return written;
  }
}
