import { decrypt, encrypt } from 'nostr-tools/nip49';
import { decode, npubEncode, nsecEncode } from 'nostr-tools/nip19';
import { generateSecretKey, getPublicKey } from 'nostr-tools/pure';
import * as z from 'zod';
import {
  AgentId,
  type AgentKey,
  type AgentKeys,
  type AgentKeysParts,
  TroupeError,
  updateEntry,
} from './troupe.ts';

const PASSPHRASE_VARIABLE = 'TROUPE_NOSTR_PASSPHRASE';

interface KeyRingParts extends AgentKeysParts {
  /** Base-2 logarithm of the scrypt cost. 16, the default, takes 64 MiB and about half a second. */
  logN?: number;
}

const Entry = z.strictObject({ ncryptsec: z.string(), pubkey: z.string(), createdAt: z.int() });
type Entry = z.infer<typeof Entry>;
/** By agent id. One entry holds all keys, so that a listing and a change see all of them. */
const Ring = z.record(z.string(), Entry);
type Ring = z.infer<typeof Ring>;

const RING = 'nostr/keys';
/** Prefix of client keys. Agent ids contain no ':'. */
const CLIENT = 'client:';
const LOG_N = 16;
/** NIP-49 code: the client does not track whether the key was handled insecurely. */
const UNTRACKED = 0x02;

export function createAgentKeys({ keyValue, clock, env, logN = LOG_N }: KeyRingParts): AgentKeys {
  async function ring(): Promise<Ring> {
    return parseRing(await keyValue.get(RING));
  }

  async function entryOf(agent: string): Promise<Entry> {
    const keys = await ring();
    const entry = entryIn(keys, agent);
    if (!entry) throw hasNoKey(agent, keys);
    return entry;
  }

  async function sealed(key: Uint8Array): Promise<Entry> {
    const [other] = Object.entries(await ring());
    if (other) unlock(env, ...other).fill(0);
    const ncryptsec = encrypt(key, passphraseIn(env), logN, UNTRACKED);
    return { ncryptsec, pubkey: getPublicKey(key), createdAt: clock.now() };
  }

  async function add(agent: string, key: Uint8Array): Promise<AgentKey> {
    try {
      const id = idOf(agent);
      const entry = await sealed(key);
      await updateEntry(keyValue, RING, parseRing, (keys) => {
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
    import: async (agent, secret) => add(agent, readSecretKey(secret, 'the given text')),
    async list() {
      const entries = Object.entries(await ring());
      return entries.filter(([id]) => isAgent(id)).map(([agent, entry]) => shown(agent, entry));
    },
    async export(agent) {
      const key = unlock(env, agent, await entryOf(agent));
      try {
        return nsecEncode(key);
      } finally {
        key.fill(0);
      }
    },
    async remove(agent) {
      await entryOf(agent);
      await updateEntry(keyValue, RING, parseRing, ({ [agent]: gone, ...rest }) => (gone ? rest : null));
    },
    async open(agent) {
      const entry = entryIn(await ring(), agent);
      return entry ? unlock(env, agent, entry) : null;
    },
    async openClient(agent) {
      if (!env[PASSPHRASE_VARIABLE]) return generateSecretKey();
      const id = `${CLIENT}${agent}`;
      const known = entryIn(await ring(), id);
      if (known) return unlock(env, id, known);
      const entry = await sealed(generateSecretKey());
      const keys = await updateEntry(keyValue, RING, parseRing, (before) =>
        entryIn(before, id) ? null : { ...before, [id]: entry },
      );
      return unlock(env, id, entryIn(keys, id) ?? entry);
    },
  };
}

type Env = AgentKeysParts['env'];

function passphraseIn(env: Env): string {
  const passphrase = env[PASSPHRASE_VARIABLE];
  if (passphrase) return passphrase;
  const message = `agents' keys are stored encrypted: set ${PASSPHRASE_VARIABLE} to their passphrase`;
  throw new TroupeError('config_invalid', message);
}

function unlock(env: Env, agent: string, { ncryptsec, pubkey }: Entry): Uint8Array {
  const key = tryUnlock(ncryptsec, passphraseIn(env));
  if (key && getPublicKey(key) === pubkey) return key;
  const message = `the key of @${agent.replace(CLIENT, '')} cannot be decrypted: ${PASSPHRASE_VARIABLE} is not the passphrase it was encrypted under`;
  throw new TroupeError('config_invalid', message, { agent });
}

function parseRing(text: string | null): Ring {
  return text === null ? {} : Ring.parse(JSON.parse(text));
}

function isAgent(id: string): boolean {
  return !id.startsWith(CLIENT);
}

/** Reads own properties only, because an agent may be called `constructor`. */
function entryIn(keys: Ring, id: string): Entry | undefined {
  return Object.hasOwn(keys, id) ? keys[id] : undefined;
}

function tryUnlock(ncryptsec: string, passphrase: string): Uint8Array | null {
  try {
    return decrypt(ncryptsec, passphrase);
  } catch {
    // The library's message for a wrong passphrase, "invalid tag", would tell an operator nothing.
    return null;
  }
}

function idOf(agent: string): string {
  const parsed = AgentId.safeParse(agent);
  if (parsed.success) return parsed.data;
  throw new TroupeError('config_invalid', parsed.error.issues[0]?.message ?? 'not an agent id', { agent });
}

function hasNoKey(agent: string, keys: Ring): TroupeError {
  const known = Object.keys(keys).filter(isAgent);
  const others = known.length > 0 ? `agents with a key: ${known.join(', ')}` : 'no agent has one';
  return new TroupeError('agent_unknown', `@${agent} has no key; ${others}`, { agent, known });
}

function hasKey(agent: string): TroupeError {
  const message = `@${agent} already has a key: export it if you still need it, remove it, and try again`;
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

const HEX = /^[0-9a-f]{64}$/i;

/**
 * The bytes of a secret key, written as `nsec1…` or 64 hex digits. Throws `config_invalid`; the error names `where` the text
 * came from, but contains neither the text nor a parser's message, which may repeat it.
 */
export function readSecretKey(text: string, where: string): Uint8Array {
  const key = bytesOf(text.trim());
  if (key && pubkeyOf(key) !== null) return key;
  throw new TroupeError(
    'config_invalid',
    `${where} is not a secret key: it must be nsec1… or 64 hex digits`,
    {
      where,
    },
  );
}

function bytesOf(text: string): Uint8Array | null {
  if (HEX.test(text)) return Uint8Array.from(Buffer.from(text, 'hex'));
  try {
    const { type, data } = decode(text);
    return type === 'nsec' ? data : null;
  } catch {
    // The parser's message contains the text.
    return null;
  }
}

/** Null if the bytes are not a valid key: zero, or beyond the order of the curve. */
function pubkeyOf(key: Uint8Array): string | null {
  try {
    return getPublicKey(key);
  } catch {
    return null;
  }
}
