import type { Clock } from '../clock.ts';
import type { KeyValue } from '../key-value.ts';
import { followLog, type FollowParts, type LogFollower } from './follow-log.ts';
import { Bell } from './bell.ts';
import type { Answer, PostParts } from './post-webhook.ts';
import { createWebhookFollower, type WebhookFollower } from './webhook-follower.ts';
import { readWebhooks } from './webhook-notes.ts';
import type { WebhookSettings } from './webhook-settings.ts';

export interface WebhooksParts extends Omit<PostParts, 'timeoutMs' | 'clock'> {
  troupeOf: (tenant: string) => FollowParts['troupe'];
  keyValueOf: (tenant: string) => KeyValue;
  tenants: () => Promise<readonly string[]>;
  settings?: WebhookSettings | undefined;
  clock: Clock;
  random: () => number;
  /** This process. */
  owner: string;
  onWarning: (error: unknown, where: string) => void;
  /** How deliveries end: for metrics. */
  onAnswer?: ((tenant: string, outcome: Answer['outcome']) => void) | undefined;
}

export interface Webhooks {
  /** The webhooks of a tenant were changed in this process; changes by others are seen within 20 s. */
  changed(tenant: string): void;
  /** Resolves when this process has seen all changes and knows of nothing to deliver. */
  idle(): Promise<void>;
  /** Before the store is closed: how far each is, is written down. */
  close(): Promise<void>;
}

interface Running {
  tenant: string;
  follower: WebhookFollower;
  log: LogFollower;
}

const LOOK_MS = 20_000;

/**
 * Follows the logs of all tenants for their webhooks, in a process that works.
 *  D1  Each webhook that is not disabled has one follower here; claims see to it that one process delivers.
 *  D2  A webhook that is removed or disabled is sent nothing more by this process once it has seen that.
 *  D3  A tenant whose webhooks cannot be read holds back no other; what runs for it goes on.
 */
export function openWebhooks(parts: WebhooksParts): Webhooks {
  const { clock, settings = {}, onWarning } = parts;
  const running = new Map<string, Running>();
  const closings = new Set<Promise<void>>();
  const changed = new Set<string>();
  const bell = new Bell();
  let isClosing = false;
  let isLooking = true;
  const waiting = new Set<() => void>();
  const run = work();

  async function work(): Promise<void> {
    let lookAt = 0;
    while (!isClosing) {
      isLooking = true;
      const isDue = clock.now() >= lookAt;
      const tenants = isDue ? await listed() : [...changed];
      for (const tenant of tenants) {
        changed.delete(tenant);
        if (!isClosing) await look(tenant);
      }
      if (isDue) {
        lookAt = clock.now() + LOOK_MS;
        for (const { follower } of running.values()) await follower.flush();
      }
      if (changed.size > 0) continue;
      isLooking = false;
      for (const wake of waiting) wake();
      waiting.clear();
      if (!isClosing) await bell.wait(clock, lookAt - clock.now());
    }
  }

  async function listed(): Promise<Iterable<string>> {
    try {
      return new Set([...(await parts.tenants()), ...changed]);
    } catch (error) {
      onWarning(error, 'webhooks: the tenants');
      return [...changed];
    }
  }

  async function look(tenant: string): Promise<void> {
    try {
      const webhooks = await readWebhooks(parts.keyValueOf(tenant));
      const enabled = new Map(
        webhooks.flatMap((each) => (each.disabledAt === undefined ? [[each.id, each]] : [])),
      );
      for (const [id, each] of running) if (each.tenant === tenant && !enabled.has(id)) stop(id, each);
      for (const [id, webhook] of enabled) {
        const known = running.get(id);
        if (known) known.follower.update(webhook);
        else running.set(id, start(tenant, webhook));
      }
    } catch (error) {
      onWarning(error, `webhooks of ${tenant}`);
    }
  }

  function start(tenant: string, webhook: Parameters<typeof createWebhookFollower>[0]): Running {
    const notes = parts.keyValueOf(tenant);
    const follower = createWebhookFollower(webhook, {
      ...parts,
      notes,
      tenant,
      timeoutMs: settings.timeoutMs,
      disableAfterMs: settings.disableAfterMs,
      onDisabled: () => tell(tenant),
      onAnswer: (outcome) => parts.onAnswer?.(tenant, outcome),
    });
    return {
      tenant,
      follower,
      log: followLog({ ...parts, troupe: parts.troupeOf(tenant), notes }, follower),
    };
  }

  function stop(id: string, { log, follower }: Running): void {
    running.delete(id);
    const closing = log
      .close()
      .then(() => follower.flush())
      .finally(() => closings.delete(closing));
    closings.add(closing);
  }

  function tell(tenant: string): void {
    changed.add(tenant);
    bell.ring();
  }

  return {
    changed: tell,
    async idle() {
      while (!isClosing && (isLooking || changed.size > 0)) {
        await new Promise<void>((resolve) => waiting.add(resolve));
      }
      await Promise.all([...running.values()].map(({ log }) => log.idle()));
    },
    async close() {
      isClosing = true;
      bell.ring();
      await run;
      for (const [id, each] of running) stop(id, each);
      await Promise.all(closings);
    },
  };
}
