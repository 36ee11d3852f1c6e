import { type Clock } from '../clock.ts';
import { DEFAULT_TENANT, type TenantId } from '../events/index.ts';
import type { Tenants } from '../facade/credentials.ts';
import type { Metrics } from '../metrics.ts';
import { openSafeFetch } from '../net/safe-fetch.ts';
import type { AgentKeys } from '../nostr/agent-keys.ts';
import type { Nostr, NostrStatus } from '../nostr/open-nostr.ts';
import type { NostrSettings } from '../nostr/settings.ts';
import type { KeyValue } from '../key-value.ts';
import { openWebhooks, type Webhooks } from '../outbound/deliver-webhooks.ts';
import { createWebhookBook, type WebhookBook } from '../outbound/webhook-book.ts';
import type { WebhookSettings } from '../outbound/webhook-settings.ts';
import { webhookSecret } from '../outbound/webhook-signature.ts';
import type { Troupe } from '../troupe.ts';

export interface OutsideParts {
  keyValueOf: (tenant: TenantId) => KeyValue;
  tenants: Tenants;
  /** Of the store: webhooks' secrets are made of it. */
  secret: string;
  settings: { webhooks?: WebhookSettings | undefined; nostr?: NostrSettings | undefined };
  clock: Clock;
  random: () => number;
  env: Record<string, string | undefined>;
  /** This process. */
  owner: string;
  metrics: Metrics;
  onWarning: (error: unknown, where: string) => void;
}

/** What a troupe says to others and hears from them by itself: webhooks, and Nostr. */
export interface Outside {
  webhooksOf(tenant: TenantId): WebhookBook;
  agentKeys: AgentKeys;
  /** Null where the definition has no `nostr`, or this process does not work. */
  nostr(): NostrStatus | null;
  /** Begins to deliver and to listen. Throws `config_invalid`. */
  start(troupe: Troupe): Promise<void>;
  /** Before the store is closed. */
  close(): Promise<void>;
}

export function createOutside(parts: OutsideParts): Outside {
  const { settings, clock, random, env, owner, metrics, keyValueOf, onWarning } = parts;
  const { allow } = settings.webhooks ?? {};
  const fetch = openSafeFetch({ allow });
  const secretOf = (id: string, generation: number) => webhookSecret(parts.secret, id, generation);
  let webhooks: Webhooks | null = null;
  let nostr: Nostr | null = null;

  return {
    webhooksOf: (tenant) =>
      createWebhookBook({
        notes: keyValueOf(tenant),
        tenant,
        clock,
        secretOf,
        fetch,
        settings: settings.webhooks,
        onChange: () => webhooks?.changed(tenant),
      }),
    agentKeys: lazyKeys(async () => {
      const { createAgentKeys } = await import('../nostr/agent-keys.ts');
      return createAgentKeys({ notes: keyValueOf(DEFAULT_TENANT), clock, env });
    }),
    nostr: () => nostr?.status() ?? null,
    async start(troupe) {
      webhooks = openWebhooks({
        troupeOf: (tenant) => troupe.forTenant(tenant),
        keyValueOf: (tenant) => keyValueOf(tenant as TenantId),
        tenants: () => parts.tenants.list(),
        settings: settings.webhooks,
        secretOf,
        fetch,
        clock,
        random,
        owner,
        onWarning,
        onAnswer: (tenant, outcome) => metrics.count('webhook_deliveries', { tenant, outcome }),
      });
      if (!settings.nostr) return;
      const { openNostr } = await import('../nostr/open-nostr.ts');
      nostr = await openNostr({
        troupe,
        settings: settings.nostr,
        agents: troupe.agents,
        notes: keyValueOf(DEFAULT_TENANT),
        clock,
        random,
        env,
        owner,
        onWarning,
        counted: (outcome) => metrics.count('nostr_published', { outcome }),
        heard: (reason) =>
          reason === null ? metrics.count('nostr_received', {}) : metrics.count('nostr_refused', { reason }),
      });
    },
    async close() {
      await Promise.all([webhooks?.close(), nostr?.close()]);
      await fetch.close();
    },
  };
}

/** Only who uses keys loads the library that makes them. */
function lazyKeys(load: () => Promise<AgentKeys>): AgentKeys {
  let loading: Promise<AgentKeys> | undefined;
  const keys = () => (loading ??= load());
  return {
    create: async (agent) => (await keys()).create(agent),
    import: async (agent, secret) => (await keys()).import(agent, secret),
    list: async () => (await keys()).list(),
    export: async (agent, meant) => (await keys()).export(agent, meant),
    remove: async (agent) => (await keys()).remove(agent),
    open: async (agent) => (await keys()).open(agent),
    openClient: async (agent) => (await keys()).openClient(agent),
  };
}
