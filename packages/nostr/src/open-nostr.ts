import { makeAuthEvent } from 'nostr-tools/nip42';
import {
  type Clock,
  type IntegrationTroupe,
  type KeyValue,
  type NostrStatus,
  TroupeError,
} from './troupe.ts';
import { createAgentKeys } from './agent-keys.ts';
import { type AgentSigners, signersFor } from './agent-signers.ts';
import { type Inbound, openInbound } from './open-inbound.ts';
import { openOutbox, type Outbox, type OutboxParts } from './outbox.ts';
import { createPublished } from './published.ts';
import { createPublisher } from './publisher.ts';
import { type Authenticate, openRelayLink, type RelayLink, type RelayLinkOptions } from './relay-link.ts';
import type { NostrSettings } from './settings.ts';
import type { Signer } from './signer.ts';

export interface NostrParts {
  /** The troupe and the entries belong to one tenant. */
  troupe: IntegrationTroupe;
  settings: NostrSettings;
  /** `pubkey`: from the agents file. */
  agents: readonly { id: string; pubkey: string | null }[];
  keyValue: KeyValue;
  clock: Clock;
  random: () => number;
  env: Readonly<Record<string, string | undefined>>;
  /** Id of this process. */
  owner: string;
  onWarning: (error: unknown, where: string) => void;
  /** Outcome of each attempt to publish an event, for metrics. */
  counted?: OutboxParts['counted'];
  /** Called with null for each received event, and with the reason for each refused event or frame. */
  heard?: RelayLinkOptions['counted'];
  /** Timing of connections. The defaults suit relays on the internet. */
  timing?: RelayLinkOptions['timing'];
}

/** Connects a troupe with relays: receives events for its agents and publishes their answers. */
export interface Nostr {
  status(): NostrStatus;
  /** Resolves when everything the relays had is in the log. */
  caughtUp(): Promise<void>;
  /** Resolves when this process has nothing left to publish. */
  idle(): Promise<void>;
  close(): Promise<void>;
}

/** Throws `config_invalid` if no agent has a key, or if the keys do not match the settings. */
export async function openNostr(parts: NostrParts): Promise<Nostr> {
  const { troupe, settings, keyValue, clock, random, env, owner, onWarning } = parts;
  const opened = new AsyncDisposableStack();
  try {
    const keys = createAgentKeys({ keyValue, clock, env });
    const signers = await signersFor({
      agents: parts.agents,
      sources: settings.keys,
      keys,
      env,
      clock,
      onWarning,
    });
    opened.defer(() => signers.close());
    const first = firstOf(signers);
    const links = settings.relays.map(({ url }) =>
      openRelayLink(url, {
        clock,
        random,
        onWarning,
        authenticate: authenticateAs(first, clock),
        maxEventBytes: settings.limits.maxEventBytes,
        counted: parts.heard,
        timing: parts.timing,
      }),
    );
    opened.defer(async () => void (await Promise.all(links.map((link) => link.close()))));
    const those = (may: 'read' | 'write') =>
      links.filter((_, index) => settings.relays[index]?.[may] ?? false);
    const published = createPublished(keyValue);
    const [hint] = [...those('write'), ...links];
    const publisher = createPublisher({
      log: troupe,
      keyValue,
      published,
      signers,
      prefix: settings.conversationPrefix,
      relay: hint?.url ?? '',
    });
    const inbound = await openInbound({
      troupe,
      settings,
      keyValue,
      clock,
      random,
      owner,
      onWarning,
      links: those('read'),
      publishedAs: (id) => published.publishedAs(id),
      pubkeys: signers.pubkeys,
    });
    opened.defer(() => inbound.close());
    const outboxes: Outbox[] = [];
    for (const link of those('write')) {
      const outbox = await openOutbox({
        troupe,
        keyValue,
        clock,
        random,
        owner,
        onWarning,
        link,
        publisher,
        counted: parts.counted,
      });
      opened.defer(() => outbox.close());
      outboxes.push(outbox);
    }
    return {
      status: () => ({
        agents: Object.fromEntries(signers.pubkeys),
        relays: links.map((link) => statusOf(link, inbound, outboxes)),
      }),
      caughtUp: () => inbound.caughtUp(),
      idle: async () => void (await Promise.all(outboxes.map((each) => each.idle()))),
      close: () => opened.disposeAsync(),
    };
  } catch (error) {
    await opened.disposeAsync();
    throw error;
  }
}

function statusOf(
  link: RelayLink,
  inbound: Inbound,
  outboxes: readonly Outbox[],
): NostrStatus['relays'][number] {
  const outbox = outboxes.map((each) => each.status()).find(({ url }) => url === link.url) ?? null;
  const read = inbound.status().find(({ url }) => url === link.url)?.inbound ?? null;
  return { ...link.status(), inbound: read, outbox };
}

function firstOf(signers: AgentSigners): Signer {
  const [agent] = signers.pubkeys.keys();
  const signer = agent === undefined ? null : signers.of(agent);
  if (signer) return signer;
  const message =
    'nostr is set up and no agent has a key: make one with "troupe nostr keys create <agent>", or name one in nostr.keys';
  throw new TroupeError('config_invalid', message);
}

/** Logs in to relays as the first agent that has a key (NIP-42). */
function authenticateAs(signer: Signer, clock: Clock): Authenticate {
  return (challenge, url) =>
    signer.sign({ ...makeAuthEvent(url, challenge), created_at: Math.floor(clock.now() / 1_000) });
}
