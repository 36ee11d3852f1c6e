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
  /** Of one tenant, as are the notes. */
  troupe: IntegrationTroupe;
  settings: NostrSettings;
  /** `pubkey`: as the agents file says. */
  agents: readonly { id: string; pubkey: string | null }[];
  keyValue: KeyValue;
  clock: Clock;
  random: () => number;
  env: Readonly<Record<string, string | undefined>>;
  /** This process. */
  owner: string;
  onWarning: (error: unknown, where: string) => void;
  /** What became of each try to publish an event, for metrics. */
  counted?: OutboxParts['counted'];
  /** Each event that a relay sends; and again, with the reason, what is not taken. */
  heard?: RelayLinkOptions['counted'];
  /** Of connections; the defaults are for relays on the internet. */
  timing?: RelayLinkOptions['timing'];
}

/** A troupe on Nostr: what relays have for its agents comes in, and what these answer goes out. */
export interface Nostr {
  status(): NostrStatus;
  /** Resolves when all that the relays had is in the log. */
  caughtUp(): Promise<void>;
  /** Resolves when this process knows of nothing to publish. */
  idle(): Promise<void>;
  close(): Promise<void>;
}

/** Throws `config_invalid` where no agent has a key, and for keys that are not what the settings say. */
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

/** To a relay that asks, a troupe is its first agent (NIP-42). */
function authenticateAs(signer: Signer, clock: Clock): Authenticate {
  return (challenge, url) =>
    signer.sign({ ...makeAuthEvent(url, challenge), created_at: Math.floor(clock.now() / 1_000) });
}
