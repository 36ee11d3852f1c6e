import type { Clock } from '../../base/clock.ts';
import { TroupeError } from '../../base/errors.ts';
import { DEFAULT_TENANT, type TenantId } from '../../events/index.ts';
import type { Tenants } from './credentials.ts';
import type {
  Integration,
  IntegrationBase,
  IntegrationHost,
  NameOf,
  Outgoing,
} from '../integrations/integration.ts';
import { type AgentKeys, loadNostr, type NostrStatus } from '../integrations/nostr.ts';
import {
  checkReach,
  createWebhookRepository,
  type WebhookRepository,
} from '../integrations/webhook-repository.ts';
import { post, webhookSecret } from '../integrations/webhook.ts';
import { DEFAULT_DISABLE_AFTER_MS, type WebhookSettings } from '../integrations/webhook-settings.ts';
import { createWebhooks } from '../integrations/webhooks.ts';
import type { KeyValue } from '../../base/key-value.ts';
import { reachRule } from '../../base/net/allow-list.ts';
import { openSafeFetch, type SafeFetch } from '../../base/net/safe-fetch.ts';
import type { Troupe } from '../troupe.ts';

interface IntegrationsParts extends Pick<
  IntegrationHost,
  'random' | 'env' | 'owner' | 'metrics' | 'onWarning'
> {
  /** All except webhooks, which every troupe has. */
  integrations: readonly Integration[];
  keyValueOf: (tenant: TenantId) => KeyValue;
  tenants: Tenants;
  /** The store's secret, from which the secrets of webhooks are derived. */
  secret: string;
  webhooks?: WebhookSettings | undefined;
  clock: Clock;
}

/** The integrations of a troupe, webhooks first. */
export interface Integrations {
  webhooksOf(tenant: TenantId): WebhookRepository;
  agentKeys: AgentKeys;
  /** Status of the integration `nostr`; null if there is none or it is not started. */
  nostr(): NostrStatus | null;
  /** Replaces references of other systems in a text by readable words. Null: no integration has any. */
  readable: ((text: string, nameOf: NameOf) => Promise<string>) | null;
  /** Starts them one after the other. Throws what they throw. */
  start(troupe: Troupe): Promise<void>;
  /** Called before the store is closed. */
  close(): Promise<void>;
}

/** Throws `config_invalid` for two integrations with one name. */
export function createIntegrations(parts: IntegrationsParts): Integrations {
  const { clock, random, env, owner, metrics, onWarning, keyValueOf } = parts;
  const fetch = openSafeFetch({ allow: parts.webhooks?.allow });
  const secretOf = (id: string, generation: number) => webhookSecret(parts.secret, id, generation);
  const webhooks = createWebhooks({ settings: parts.webhooks, secretOf, fetch });
  const all: readonly Integration[] = [webhooks, ...parts.integrations];
  refuseTwins(all);
  const base: IntegrationBase = {
    keyValueOf: (tenant = DEFAULT_TENANT) => keyValueOf(tenant as TenantId),
    clock,
    outgoing: outgoingOf(fetch, parts),
  };
  for (const integration of all) integration.attach?.(base);

  async function readable(text: string, nameOf: NameOf): Promise<string> {
    let words = text;
    for (const integration of all) words = (await integration.readable?.(words, nameOf)) ?? words;
    return words;
  }

  return {
    webhooksOf: (tenant) =>
      createWebhookRepository({
        keyValue: keyValueOf(tenant),
        tenant,
        clock,
        secretOf,
        fetch,
        settings: parts.webhooks,
        onChange: () => webhooks.changed(tenant),
      }),
    agentKeys: lazyKeys(async () =>
      (await loadNostr()).openAgentKeys({ keyValue: keyValueOf(DEFAULT_TENANT), clock, env }),
    ),
    nostr: () => {
      const nostr = all.find(({ name }) => name === 'nostr');
      return (nostr?.status?.() ?? null) as NostrStatus | null;
    },
    readable: all.some((integration) => integration.readable !== undefined) ? readable : null,
    async start(troupe) {
      const host: IntegrationHost = {
        ...base,
        troupeOf: (tenant = DEFAULT_TENANT) => troupe.forTenant(tenant),
        tenants: () => parts.tenants.list(),
        random,
        env,
        owner,
        metrics,
        onWarning,
      };
      for (const integration of all) await integration.start(host);
    },
    async close() {
      await Promise.all(all.map((integration) => integration.close()));
      await fetch.close();
    },
  };
}

function outgoingOf(
  fetch: SafeFetch,
  { clock, webhooks: settings = {} }: Pick<IntegrationsParts, 'clock' | 'webhooks'>,
): Outgoing {
  const { allow, timeoutMs, disableAfterMs = DEFAULT_DISABLE_AFTER_MS } = settings;
  const reach = reachRule(allow);
  return {
    check: (url) => checkReach(url, reach),
    post: (url, request, signal) => post(url, request, { fetch, clock, timeoutMs }, signal),
    giveUpAfterMs: disableAfterMs,
  };
}

function refuseTwins(integrations: readonly Integration[]): void {
  const names = integrations.map(({ name }) => name);
  const twin = names.find((name, index) => names.indexOf(name) !== index);
  if (twin === undefined) return;
  const message = `there are two integrations named "${twin}": each needs a unique name`;
  throw new TroupeError('config_invalid', message, { integration: twin });
}

/** Loads the package at the first use of a key. */
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
