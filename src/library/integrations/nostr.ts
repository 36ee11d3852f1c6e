import type { Clock } from '../../base/clock.ts';
import type { KeyValue } from '../../base/key-value.ts';
import { loadWith } from '../../base/optional-packages.ts';
import type { Integration } from './integration.ts';

/** The interface of `@troupe/nostr` that the core uses. The package is separate and optional. */
export interface NostrPackage {
  /** Throws `config_invalid` for settings that are not valid. */
  nostr(settings: unknown): Integration & { status(): NostrStatus | null };
  /** Opens the keys of the agents. */
  openAgentKeys(parts: AgentKeysParts): Promise<AgentKeys>;
  /** Throws `config_invalid` for a text that is not a relay URL, `address_unreachable` if nothing answers there. */
  probeRelay(url: string, parts: { clock: Clock }): Promise<RelayReport>;
}

/** Throws `package_missing` with the command that installs the package. */
export function loadNostr(): Promise<NostrPackage> {
  const need = { by: 'Nostr', packages: { '@troupe/nostr': null } };
  // `as string`: the core compiles without the package.
  return loadWith(need, async () => (await import('@troupe/nostr' as string)) as NostrPackage);
}

/** What the keys of agents need. */
export interface AgentKeysParts {
  /** Entries of the root tenant. */
  keyValue: KeyValue;
  /** Source of time. Default: the clock of the system. */
  clock: Pick<Clock, 'now'>;
  /** Environment variables. TROUPE_NOSTR_PASSPHRASE has the passphrase. */
  env: Readonly<Record<string, string | undefined>>;
}

/** The public part of an agent's key. */
export interface AgentKey {
  /** Id of the agent. */
  agent: string;
  /** Its public key as Nostr programs show it. */
  npub: string;
  /** Its public key, 64 hex digits. */
  pubkey: string;
  /** ISO 8601. */
  createdAt: string;
}

/**
 * The keys that agents sign with, encrypted at rest (NIP-49) under the passphrase in TROUPE_NOSTR_PASSPHRASE.
 *  K1  A key leaves through `export`, whose caller confirms it, and through `open`, for signing. Nothing else returns one.
 *  K2  All keys share one passphrase: a key is not added under another.
 *  K3  No error contains a key, a passphrase, or a text that was given as one.
 * Methods throw `config_invalid`; `agent_unknown` for an agent without a key.
 */
export interface AgentKeys {
  /** Makes a key for an agent that has none. */
  create(agent: string): Promise<AgentKey>;
  /** `secret` is `nsec1…` or 64 hex digits. */
  import(agent: string, secret: string): Promise<AgentKey>;
  /** The keys of all agents. */
  list(): Promise<AgentKey[]>;
  /** Returns `nsec1…`. */
  export(agent: string, meant: { confirmed: true }): Promise<string>;
  /** Deletes the key of an agent for good. */
  remove(agent: string): Promise<void>;
  /** The caller overwrites the bytes after use. Null if the agent has no key. */
  open(agent: string): Promise<Uint8Array | null>;
  /**
   * The key under which an agent's remote signer knows this troupe. The first call creates and stores it; without a
   * passphrase each call creates a new one.
   */
  openClient(agent: string): Promise<Uint8Array>;
}

/** State of all relays. */
export interface NostrStatus {
  /** Pubkeys of the agents that can sign. */
  agents: Record<string, string>;
  /** Its relays. */
  relays: NostrRelayStatus[];
}

interface NostrRelayStatus {
  /** Its address. */
  url: string;
  /** `waiting`: for the next attempt to connect. `isolated`: not connected for a time, because of its faults. */
  state: 'connecting' | 'open' | 'waiting' | 'isolated' | 'closed';
  /** Time of the last connection, ms. */
  connectedAt: number | null;
  /** Events received by this process. */
  received: number;
  /** Refused events and other frames, by reason. */
  rejected: Partial<Record<string, number>>;
  /** Number of times that it was isolated after failures. */
  isolations: number;
  /** The last failure. Null: none. */
  lastError: string | null;
  /** Null for a relay that is not read. `waiting`: another process reads it. `mark`: seconds since the epoch. */
  inbound: { state: 'waiting' | 'catching up' | 'live'; mark: number | null } | null;
  /** Null for a relay that is not written to. */
  outbox: NostrOutboxStatus | null;
}

/** State of publishing to a relay. */
export interface NostrOutboxStatus {
  /** Its address. */
  url: string;
  /** Events and conversations still to be published, as far as this process knows. */
  behind: number;
  /** Number of events that the relay has accepted. */
  published: number;
  /** Events that the relay refused for good, by its reason. */
  refused: Record<string, number>;
  /** Consecutive failures. */
  failures: number;
  /** The last failure. Null: none. */
  lastError: string | null;
  /** Time of the next attempt, ms; null if nothing has failed. */
  retryAt: number | null;
}

/** The result of a probe of a relay. */
export interface RelayReport {
  /** Without user, password and query. */
  url: string;
  /** Time to connect, ms. Null: it did not. */
  connectMs: number;
  /** The relay's description of itself (NIP-11). */
  information: RelayInformation | null;
  /** The answer to a request. */
  read: RelayAnswer;
  /** The answer to an ephemeral event under a throwaway key. */
  write: RelayAnswer;
  /** `required`: it answers only after a login (NIP-42). `offered`: it also answers without. */
  auth: 'none' | 'offered' | 'required';
}

/** A relay's answer to one request. */
export interface RelayAnswer {
  /** Whether the relay accepted it. */
  ok: boolean;
  /** Time it took, ms. */
  ms: number;
  /** Reason of a refusal; '' if there is none. */
  reason: string;
  /** It neither accepted nor refused. */
  isSilent?: boolean;
}

/** The relay's description of itself (NIP-11). */
export interface RelayInformation {
  /** Name that people see. */
  name?: string | undefined;
  /** Its software. */
  software?: string | undefined;
  /** Version of its software. */
  version?: string | undefined;
  /** Numbers of the NIPs that it supports. */
  supported_nips?: (number | string)[] | undefined;
  /** Its limits. */
  limitation?: Record<string, unknown> | undefined;
}
