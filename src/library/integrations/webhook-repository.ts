import { randomBytes } from 'node:crypto';
import { isIP } from 'node:net';
import { TroupeError } from '../../base/errors.ts';
import { parseGiven } from '../../events/index.ts';
import { hostOf, portOf, reachRule } from '../../base/net/allow-list.ts';
import type { KeyValue } from '../../base/key-value.ts';
import {
  type PostParts,
  postWebhook,
  changeWebhook,
  changeWebhooks,
  changeWebhookStatus,
  NewWebhook,
  NOT_FAILING,
  readWebhook,
  readWebhooks,
  readWebhookStatus,
  rotate,
  type Webhook,
  type WebhookInfo,
  webhookInfo,
} from './webhook.ts';
import { DEFAULT_MAX_WEBHOOKS, type WebhookSettings } from './webhook-settings.ts';

export type { WebhookInfo } from './webhook.ts';

/** `secret` signs the deliveries. It is shown only here. */
export interface IssuedWebhook {
  /** The webhook. */
  webhook: WebhookInfo;
  /** The secret of its signatures. Shown once. */
  secret: string;
}

/** The receiver's answer to a `ping`. */
export interface WebhookTest {
  /** Whether it was accepted. */
  ok: boolean;
  /** Null if there was no answer. */
  status: number | null;
  /** Time it took, ms. */
  ms: number;
  /** What went wrong. Null: nothing. */
  error?: string;
}

/** The webhooks of one tenant. Methods return null if there is no such webhook. */
export interface WebhookRepository {
  /** Throws `config_invalid`, `address_refused`, and `command_refused` if the tenant has its maximum of webhooks. */
  create(webhook: NewWebhook, createdBy?: string): Promise<IssuedWebhook>;
  /** Oldest first. */
  list(): Promise<WebhookInfo[]>;
  /** One of them. Null: there is no such webhook. */
  get(id: string): Promise<WebhookInfo | null>;
  /** Deletes one for good. */
  remove(id: string): Promise<WebhookInfo | null>;
  /** Creates a new secret. Older ones also sign until 24 hours after their replacement. */
  rotate(id: string): Promise<IssuedWebhook | null>;
  /** Sends a `ping` now. If it succeeds, a disabled webhook is enabled and continues where it stopped. */
  test(id: string): Promise<WebhookTest | null>;
}

interface WebhookRepositoryParts extends Omit<PostParts, 'timeoutMs'> {
  /** Entries of the tenant. */
  keyValue: KeyValue;
  tenant: string;
  settings?: WebhookSettings | undefined;
  /** Called after each change by this process. */
  onChange?: (() => void) | undefined;
  newId?: () => string;
}

/** Owns the entry `webhooks` of a tenant. `createWebhooks` delivers. */
export function createWebhookRepository(parts: WebhookRepositoryParts): WebhookRepository {
  const { keyValue, tenant, clock, secretOf, settings = {} } = parts;
  const { onChange = () => {}, newId = newWebhookId } = parts;
  const { maxPerTenant = DEFAULT_MAX_WEBHOOKS, timeoutMs, allow } = settings;
  const reach = reachRule(allow);

  const shown = async (webhook: Webhook): Promise<WebhookInfo> =>
    webhookInfo(webhook, await readWebhookStatus(keyValue, webhook.id));
  const issued = async (webhook: Webhook): Promise<IssuedWebhook> => ({
    webhook: await shown(webhook),
    secret: secretOf(webhook.id, webhook.generation),
  });

  async function enable(id: string): Promise<void> {
    await changeWebhookStatus(keyValue, id, (status) => ({ ...status, ...NOT_FAILING }));
    await changeWebhook(keyValue, id, ({ disabledAt: _at, reason: _reason, ...webhook }) => webhook);
    onChange();
  }

  return {
    async create(given, createdBy) {
      const asked = parseGiven(NewWebhook, given, 'the webhook');
      checkReach(asked.url, reach);
      const { url, name, on, conversations } = asked;
      const webhook: Webhook = {
        id: newId(),
        url,
        ...(name !== undefined && { name }),
        on,
        ...(conversations && { conversations }),
        createdAt: clock.now(),
        ...(createdBy !== undefined && { createdBy }),
        generation: 1,
        rotations: [],
      };
      await changeWebhooks(keyValue, (all) => {
        if (all.length < maxPerTenant) return [...all, webhook];
        const message = `this tenant has ${all.length} webhooks and may have ${maxPerTenant}: remove one that is no longer used`;
        throw new TroupeError('command_refused', message, { limit: maxPerTenant });
      });
      onChange();
      return issued(webhook);
    },
    list: async () => Promise.all((await readWebhooks(keyValue)).map(shown)),
    async get(id) {
      const webhook = await readWebhook(keyValue, id);
      return webhook && shown(webhook);
    },
    async remove(id) {
      const webhook = await readWebhook(keyValue, id);
      if (!webhook) return null;
      await changeWebhooks(keyValue, (all) => all.filter((each) => each.id !== id));
      onChange();
      return shown(webhook);
    },
    async rotate(id) {
      const webhook = await changeWebhook(keyValue, id, (stored) => rotate(stored, clock.now()));
      if (!webhook) return null;
      onChange();
      return issued(webhook);
    },
    async test(id) {
      const webhook = await readWebhook(keyValue, id);
      if (!webhook) return null;
      const { name } = webhook;
      const payload = { type: 'ping', tenant, webhook: id, ...(name !== undefined && { name }) };
      const begun = clock.now();
      const ping = { id: `ping_${randomBytes(12).toString('hex')}`, payload };
      const answer = await postWebhook(webhook, ping, { ...parts, timeoutMs });
      const ms = clock.now() - begun;
      if (answer.outcome !== 'taken') return { ok: false, status: answer.status, ms, error: answer.why };
      if (webhook.disabledAt !== undefined) await enable(id);
      return { ok: true, status: answer.status, ms };
    },
  };
}

/** Refuses addresses that are never allowed. The addresses of a name are checked with each delivery. */
export function checkReach(text: string, reach: ReturnType<typeof reachRule>): void {
  const url = new URL(text);
  const host = hostOf(url);
  const verdict = reach({ host, port: portOf(url) });
  const reason = 'refused' in verdict ? verdict.refused : isIP(host) !== 0 ? verdict.addresses(host) : null;
  if (reason === null) return;
  const message = `${host} may not be called: ${reason}; the operator can allow it with webhooks.allow`;
  throw new TroupeError('address_refused', message, { host, reason });
}

function newWebhookId(): string {
  return `wh_${randomBytes(9).toString('hex')}`;
}
