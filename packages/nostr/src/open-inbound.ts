import { decode } from 'nostr-tools/nip19';
import { type FollowParts, type IntegrationTroupe, TroupeError } from './troupe.ts';
import { HighWater } from './high-water.ts';
import { openVerifier } from './signed-event.ts';
import type { Published } from './published.ts';
import type { RelayLink } from './relay-link.ts';
import { Receiver } from './receive.ts';
import type { NostrSettings } from './settings.ts';
import { RelayReader, sinceOf } from './relay-reader.ts';

export interface InboundParts extends Omit<FollowParts, 'troupe'> {
  troupe: Pick<IntegrationTroupe, 'send' | 'agents'>;
  settings: NostrSettings;
  /** The links to read. The caller closes them. */
  links: readonly RelayLink[];
  /** Finds the event of the log that was published under a Nostr id. */
  publishedAs: Published['publishedAs'];
  /** Pubkeys by agent. They take precedence over the agents file. */
  pubkeys?: ReadonlyMap<string, string> | undefined;
  /** Default 30 s. */
  claimMs?: number | undefined;
}

export interface Inbound {
  status(): ReturnType<RelayReader['status']>[];
  /** Resolves when everything the relays had for us is in the log. Waits for a relay that cannot be reached. */
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
    // Reported by the error below.
  }
  throw new TroupeError(
    'config_invalid',
    `nostr.${field}: "${person}" is not an npub: one of its letters is wrong`,
    { path: `nostr.${field}` },
  );
}
