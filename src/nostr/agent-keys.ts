import { decrypt, encrypt } from 'nostr-tools/nip49';
import { npubEncode, nsecEncode } from 'nostr-tools/nip19';
import { generateSecretKey, getPublicKey } from 'nostr-tools/pure';
import * as z from 'zod';
import type { Clock } from '../clock.ts';
import { TroupeError } from '../errors.ts';
import { AgentId } from '../events/index.ts';
import { updateEntry, type KeyValue } from '../key-value.ts';
import { readSecretKey } from './secret-key.ts';

const PASSPHRASE_VARIABLE = 'TROUPE_NOSTR_PASSPHRASE';

/** Of an agent's key what may be shown. */
export interface AgentKey {
  agent: string;
  npub: string;
  pubkey: string;
  /** ISO 8601. */
  createdAt: string;
}

/**
 * The keys that agents sign with, encrypted at rest (NIP-49) under the passphrase in TROUPE_NOSTR_PASSPHRASE.
 *  K1  A key leaves by `export` alone, which must be told that this is meant, and by `open`, to sign.
 *  K2  All keys have one passphrase: none is added under another.
 *  K3  No error holds a key, a passphrase or what was read in the place of one.
 * Methods throw `config_invalid`; `agent_unknown` for an agent without a key.
 */
export interface AgentKeys {
  create(agent: string): Promise<AgentKey>;
  /** Takes a key over: `nsec1…` or 64 hex digits. */
  import(agent: string, secret: string): Promise<AgentKey>;
  list(): Promise<AgentKey[]>;
  /** `nsec1…` */
  export(agent: string, meant: { confirmed: true }): Promise<string>;
  remove(agent: string): Promise<void>;
  /** The bytes, to be overwritten after use; null where it has none. */
  open(agent: string): Promise<Uint8Array | null>;
  /** By which the remote signer of an agent knows us; made when it is first asked for. A new one each time without a passphrase. */
  openClient(agent: string): Promise<Uint8Array>;
}

export interface AgentKeysParts {
  notes: KeyValue;
  clock: Pick<Clock, 'now'>;
  env: Record<string, string | undefined>;
  /** The cost of a guess at the passphrase doubles with each; 16: 64 MiB and about half a second. */
  logN?: number;
}

const Entry = z.strictObject({ ncryptsec: z.string(), pubkey: z.string(), createdAt: z.int() });
type Entry = z.infer<typeof Entry>;
/** By agent: one note, so that a listing and a change see all of it. */
const Ring = z.record(z.string(), Entry);
type Ring = z.infer<typeof Ring>;

const RING = 'nostr/keys';
/** Before the id of an agent, which has no ':'. */
const CLIENT = 'client:';
const LOG_N = 16;
/** The key was never known to be handled insecurely; nor do we know that it was not. See NIP-49. */
const UNTRACKED = 0x02;

export function createAgentKeys({ notes, clock, env, logN = LOG_N }: AgentKeysParts): AgentKeys {
  function passphrase(): string {
    const given = env[PASSPHRASE_VARIABLE];
    if (given) return given;
    const message = `keys of agents are kept encrypted: set ${PASSPHRASE_VARIABLE} to the passphrase they are, or shall be, under`;
    throw new TroupeError('config_invalid', message);
  }

  async function ring(): Promise<Ring> {
    return parseRing(await notes.get(RING));
  }

  async function entryOf(agent: string): Promise<Entry> {
    const keys = await ring();
    const entry = entryIn(keys, agent);
    if (entry) return entry;
    const known = Object.entries(keys)
      .filter(isAgents)
      .map(([id]) => id);
    const message = `@${agent} has no key; ${known.length > 0 ? `those of: ${known.join(', ')}` : 'nor has any other agent'}`;
    throw new TroupeError('agent_unknown', message, { agent, known });
  }

  function unlock(agent: string, { ncryptsec, pubkey }: Entry): Uint8Array {
    const key = tryUnlock(ncryptsec, passphrase());
    if (key && getPublicKey(key) === pubkey) return key;
    const message = `the key of @${agent.replace(CLIENT, '')} cannot be decrypted: ${PASSPHRASE_VARIABLE} is not the passphrase it was encrypted under`;
    throw new TroupeError('config_invalid', message, { agent });
  }

  async function sealed(key: Uint8Array): Promise<Entry> {
    const [other] = Object.entries(await ring());
    if (other) unlock(...other).fill(0);
    const ncryptsec = encrypt(key, passphrase(), logN, UNTRACKED);
    return { ncryptsec, pubkey: getPublicKey(key), createdAt: clock.now() };
  }

  async function add(agent: string, key: Uint8Array): Promise<AgentKey> {
    try {
      const id = idOf(agent);
      const entry = await sealed(key);
      await updateEntry(notes, RING, parseRing, (keys) => {
        if (entryIn(keys, id)) throw hasKey(id);
        const owner = Object.entries(keys).find(([, { pubkey }]) => pubkey === entry.pubkey)?.[0];
        if (owner !== undefined) throw isKeyOf(owner);
        return { ...keys, [id]: entry };
      });
      return shown(id, entry);
    } finally {
      key.fill(0);
    }
  }

  return {
    create: (agent) => add(agent, generateSecretKey()),
    import: async (agent, secret) => add(agent, readSecretKey(secret, 'what was given')),
    async list() {
      const entries = Object.entries(await ring());
      return entries.filter(isAgents).map(([agent, entry]) => shown(agent, entry));
    },
    async export(agent) {
      const key = unlock(agent, await entryOf(agent));
      try {
        return nsecEncode(key);
      } finally {
        key.fill(0);
      }
    },
    async remove(agent) {
      await entryOf(agent);
      await updateEntry(notes, RING, parseRing, ({ [agent]: gone, ...rest }) => (gone ? rest : null));
    },
    async open(agent) {
      const entry = entryIn(await ring(), agent);
      return entry ? unlock(agent, entry) : null;
    },
    async openClient(agent) {
      if (!env[PASSPHRASE_VARIABLE]) return generateSecretKey();
      const id = `${CLIENT}${agent}`;
      const known = entryIn(await ring(), id);
      if (known) return unlock(id, known);
      const entry = await sealed(generateSecretKey());
      const keys = await updateEntry(notes, RING, parseRing, (before) =>
        entryIn(before, id) ? null : { ...before, [id]: entry },
      );
      return unlock(id, entryIn(keys, id) ?? entry);
    },
  };
}

function parseRing(text: string | null): Ring {
  return text === null ? {} : Ring.parse(JSON.parse(text));
}

function isAgents([id]: [string, Entry]): boolean {
  return !id.startsWith(CLIENT);
}

/** An agent may be called `constructor`. */
function entryIn(keys: Ring, id: string): Entry | undefined {
  return Object.hasOwn(keys, id) ? keys[id] : undefined;
}

function tryUnlock(ncryptsec: string, passphrase: string): Uint8Array | null {
  try {
    return decrypt(ncryptsec, passphrase);
  } catch {
    // Of a wrong passphrase it says "invalid tag", which tells nobody anything.
    return null;
  }
}

function idOf(agent: string): string {
  const parsed = AgentId.safeParse(agent);
  if (parsed.success) return parsed.data;
  throw new TroupeError('config_invalid', parsed.error.issues[0]?.message ?? 'not an agent id', { agent });
}

function hasKey(agent: string): TroupeError {
  const message = `@${agent} has a key already: export it if it is still of use, remove it, and try again`;
  return new TroupeError('config_invalid', message, { agent });
}

function isKeyOf(agent: string): TroupeError {
  return new TroupeError('config_invalid', `this is the key of @${agent}: two agents cannot share one`, {
    agent,
  });
}

function shown(agent: string, { pubkey, createdAt }: Entry): AgentKey {
  return { agent, npub: npubEncode(pubkey), pubkey, createdAt: new Date(createdAt).toISOString() };
}
