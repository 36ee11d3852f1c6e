import { makeAuthEvent } from 'nostr-tools/nip42';
import { decode } from 'nostr-tools/nip19';
import {
  type Clock,
  type FollowParts,
  type IntegrationTroupe,
  type NostrStatus,
  TroupeError,
} from './troupe.ts';
import { createAgentKeys } from './agent-keys.ts';
import { type AgentSigners, signersFor } from './agent-signers.ts';
import type { Signer } from './signer.ts';
import { openOutbox, type Outbox, type OutboxParts, createPublisher } from './outbox.ts';
import { createPublished, type Published } from './published.ts';
import { type Authenticate, RelayLink, type RelayLinkOptions } from './relay-link.ts';
import type { NostrSettings } from './settings.ts';
import { HighWater } from './high-water.ts';
import { openVerifier } from './nostr-event.ts';
import { Receiver } from './intake.ts';
import { RelayReader, sinceOf } from './relay-reader.ts';

interface NostrParts extends FollowParts {
  /** The troupe and the entries belong to one tenant. */
  troupe: IntegrationTroupe;
  settings: NostrSettings;
  /** `pubkey`, and `aliases` with its former ids, come from the agents file. */
  agents: readonly { id: string; aliases?: readonly string[]; pubkey: string | null }[];
  env: Readonly<Record<string, string | undefined>>;
  /** Called with the outcome of each attempt to publish an event, for metrics. */
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
  const opened = new AsyncDisposableStack();
  try {
    return await openParts(parts, opened);
  } catch (error) {
    await opened.disposeAsync();
    throw error;
  }
}

async function openParts(parts: NostrParts, opened: AsyncDisposableStack): Promise<Nostr> {
  const { troupe, settings, keyValue } = parts;
  const signers = await signersFor({
    ...parts,
    sources: settings.keys,
    keys: createAgentKeys(parts),
  });
  opened.defer(() => signers.close());
  const links = openLinks(parts, firstOf(signers));
  opened.defer(async () => void (await Promise.all(links.map((link) => link.close()))));
  const linksTo = (use: 'read' | 'write') =>
    links.filter((_, index) => settings.relays[index]?.[use] ?? false);
  const published = createPublished(keyValue);
  const [hint] = [...linksTo('write'), ...links];
  const publisher = createPublisher({
    log: troupe,
    keyValue,
    published,
    signers,
    prefix: settings.conversationPrefix,
    relay: hint?.url ?? '',
  });
  const inbound = await openInbound({
    ...parts,
    links: linksTo('read'),
    publishedAs: (id) => published.publishedAs(id),
    pubkeys: signers.pubkeys,
  });
  opened.defer(() => inbound.close());
  const outboxes: Outbox[] = [];
  for (const link of linksTo('write')) {
    const outbox = await openOutbox({ ...parts, link, publisher });
    opened.defer(() => outbox.close());
    outboxes.push(outbox);
  }
  return {
    status() {
      const [read, written] = [inbound.status(), outboxes.map((outbox) => outbox.status())];
      const relays = links.map((link) => ({
        ...link.status(),
        inbound: read.find(({ url }) => url === link.url)?.inbound ?? null,
        outbox: written.find(({ url }) => url === link.url) ?? null,
      }));
      return { agents: Object.fromEntries(signers.pubkeys), relays };
    },
    caughtUp: () => inbound.caughtUp(),
    idle: async () => void (await Promise.all(outboxes.map((outbox) => outbox.idle()))),
    close: () => opened.disposeAsync(),
  };
}

function openLinks(
  { settings, clock, random, onWarning, heard, timing }: NostrParts,
  signer: Signer,
): RelayLink[] {
  const authenticate = authenticateAs(signer, clock);
  const { maxEventBytes } = settings.limits;
  return settings.relays.map(
    ({ url }) =>
      new RelayLink(url, { clock, random, onWarning, authenticate, maxEventBytes, counted: heard, timing }),
  );
}

function firstOf(signers: AgentSigners): Signer {
  const [agent] = signers.pubkeys.keys();
  const signer = agent === undefined ? null : signers.of(agent);
  if (signer) return signer;
  const message =
    'nostr is configured but no agent has a key: create one with "troupe nostr keys create <agent>", or name one in nostr.keys';
  throw new TroupeError('config_invalid', message);
}

/** Logs in to relays as the first agent that has a key (NIP-42). */
function authenticateAs(signer: Signer, clock: Clock): Authenticate {
  return (challenge, url) =>
    signer.sign({ ...makeAuthEvent(url, challenge), created_at: Math.floor(clock.now() / 1_000) });
}

interface InboundParts extends Omit<FollowParts, 'troupe'> {
  troupe: Pick<IntegrationTroupe, 'send' | 'agents'>;
  settings: NostrSettings;
  /** The links to read. The caller closes them. */
  links: readonly RelayLink[];
  /** Finds the event of the log that was published under a Nostr id. */
  publishedAs: Published['publishedAs'];
  /** Pubkeys by agent id. They take precedence over the agents file. */
  pubkeys?: ReadonlyMap<string, string> | undefined;
  /** Length of a claim, ms. Default 30,000. */
  claimMs?: number | undefined;
}

export interface Inbound {
  status(): ReturnType<RelayReader['status']>[];
  /** Resolves when everything that the relays had for us is in the log. Waits for relays that cannot be reached. */
  caughtUp(): Promise<void>;
  close(): Promise<void>;
}

const CLAIM_MS = 30_000;

/** Receives events for our agents from relays. Throws `config_invalid` if no agent has a pubkey. */
export async function openInbound(parts: InboundParts): Promise<Inbound> {
  const { troupe, settings, keyValue, clock, links } = parts;
  const agents = new Map(
    troupe.agents.flatMap(({ id, name, pubkey: written }) => {
      const pubkey = parts.pubkeys?.get(id) ?? written;
      return pubkey === null ? [] : [[pubkey, { id, name }] as const];
    }),
  );
  if (agents.size === 0) {
    throw new TroupeError(
      'config_invalid',
      'no agent has a pubkey, so no event can address one: create a key for an agent',
    );
  }
  const now = Math.floor(clock.now() / 1_000);
  const relays = await Promise.all(
    links.map(async (link) => {
      const mark = new HighWater(keyValue, link.url);
      const startedAt = await mark.firstSetUp(now);
      await mark.load();
      return { link, mark, startedAt };
    }),
  );
  const verify = await openVerifier();
  const closing = new AbortController();
  const receiver = new Receiver({
    ...parts,
    agents,
    people: new Set(settings.people.map((each) => pubkeyOf(each, 'people'))),
    operators: new Set(settings.operators.map((each) => pubkeyOf(each, 'operators'))),
    horizon: Math.min(...relays.map(({ mark, startedAt }) => sinceOf(mark, startedAt, settings))),
    signal: closing.signal,
  });
  const claimMs = parts.claimMs ?? CLAIM_MS;
  const shared = { ...parts, receiver, verify, agents, relays: links.length, claimMs };
  const readers = relays.map((relay) => new RelayReader({ ...shared, ...relay }));
  return {
    status: () => readers.map((reader) => reader.status()),
    caughtUp: async () => void (await Promise.all(readers.map((each) => each.caughtUp()))),
    async close() {
      closing.abort();
      await Promise.all(readers.map((each) => each.close()));
    },
  };
}

function pubkeyOf(person: string, field: 'people' | 'operators'): string {
  if (!person.startsWith('npub1')) return person;
  try {
    const decoded = decode(person);
    if (decoded.type === 'npub') return decoded.data;
  } catch {
    // The error below reports it.
  }
  throw new TroupeError(
    'config_invalid',
    `nostr.${field}: "${person}" is not an npub: one of its letters is wrong`,
    { path: `nostr.${field}` },
  );
}
