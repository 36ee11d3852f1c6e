import { randomBytes } from 'node:crypto';
import { isIP } from 'node:net';
import { TroupeError } from '../errors.ts';
import { parseGiven } from '../events/index.ts';
import { hostOf, portOf, reachRule } from '../net/allow-list.ts';
import type { KeyValue } from '../key-value.ts';
import { type PostParts, postWebhook } from './post-webhook.ts';
import {
  changeWebhook,
  changeWebhooks,
  NewWebhook,
  readWebhook,
  readWebhooks,
  rotate,
  type Webhook,
  type WebhookInfo,
  webhookInfo,
} from './webhook.ts';
import { DEFAULT_MAX_WEBHOOKS, type WebhookSettings } from './webhook-settings.ts';
import { changeWebhookStatus, readWebhookStatus } from './webhook.ts';

export type { WebhookInfo } from './webhook.ts';

/** `secret` is shown this once; it signs what is sent. */
export interface IssuedWebhook {
  webhook: WebhookInfo;
  secret: string;
}

/** What the receiver said to a `ping`. */
export interface WebhookTest {
  ok: boolean;
  /** Null: there was no answer. */
  status: number | null;
  ms: number;
  error?: string;
}

/** The webhooks of one tenant. Null: there is no such webhook. */
export interface WebhookBook {
  /** Throws `config_invalid`, `address_refused`, and `command_refused` where the tenant has as many as it may have. */
  create(webhook: NewWebhook, createdBy?: string): Promise<IssuedWebhook>;
  /** The oldest first. */
  list(): Promise<WebhookInfo[]>;
  get(id: string): Promise<WebhookInfo | null>;
  remove(id: string): Promise<WebhookInfo | null>;
  /** A new secret; each one before it signs too until 24 hours after it was replaced. */
  rotate(id: string): Promise<IssuedWebhook | null>;
  /** Sends a `ping` now. One that is disabled and takes it is enabled again, and goes on where it was. */
  test(id: string): Promise<WebhookTest | null>;
}

export interface WebhookBookParts extends Omit<PostParts, 'timeoutMs'> {
  /** Of the tenant. */
  keyValue: KeyValue;
  tenant: string;
  settings?: WebhookSettings | undefined;
  /** Told after each change, in this process. */
  onChange?: (() => void) | undefined;
  newId?: () => string;
}

/** Owns the note `webhooks` of a tenant; what is delivered is for `openWebhooks`. */
export function createWebhookBook(parts: WebhookBookParts): WebhookBook {
  const {
    keyValue,
    tenant,
    clock,
    secretOf,
    settings = {},
    onChange = () => {},
    newId = newWebhookId,
  } = parts;
  const { maxPerTenant = DEFAULT_MAX_WEBHOOKS, timeoutMs, allow } = settings;
  const reach = reachRule(allow);

  const shown = async (webhook: Webhook): Promise<WebhookInfo> =>
    webhookInfo(webhook, await readWebhookStatus(keyValue, webhook.id));
  const issued = async (webhook: Webhook): Promise<IssuedWebhook> => ({
    webhook: await shown(webhook),
    secret: secretOf(webhook.id, webhook.generation),
  });

  async function enable(id: string): Promise<void> {
    await changeWebhookStatus(keyValue, id, (status) => ({
      ...status,
      failingSince: null,
      failedAt: null,
      lastError: null,
      retryAt: null,
    }));
    await changeWebhook(keyValue, id, ({ disabledAt: _at, reason: _reason, ...webhook }) => webhook);
    onChange();
  }

  return {
    async create(given, createdBy) {
      const asked = parseGiven(NewWebhook, given, 'the webhook');
      checkReach(asked.url, reach);
      const { name, conversations } = asked;
      const webhook: Webhook = {
        id: newId(),
        url: asked.url,
        ...(name !== undefined && { name }),
        on: asked.on,
        ...(conversations && { conversations }),
        createdAt: clock.now(),
        ...(createdBy !== undefined && { createdBy }),
        generation: 1,
      };
      await changeWebhooks(keyValue, (all) => {
        if (all.length < maxPerTenant) return [...all, webhook];
        const message = `this tenant has ${all.length} webhooks, and may have ${maxPerTenant}: remove one that nobody uses`;
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

/** What is surely not reachable is told at once; where a name leads is seen with each delivery. */
function checkReach(text: string, reach: ReturnType<typeof reachRule>): void {
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
