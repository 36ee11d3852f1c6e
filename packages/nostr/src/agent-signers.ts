import { type AgentKeys, type Clock, TroupeError } from './troupe.ts';
import { createLocalSigner, type Signer } from './signer.ts';
import { readSecretKey } from './agent-keys.ts';

/** Source of an agent's key: the encrypted store, a variable, or a remote signer whose URL is in a variable. */
export type KeySource = 'stored' | { env: string } | { bunkerEnv: string };

interface SignersParts {
  /** `pubkey`, and `aliases` with its former ids, come from the agents file. */
  agents: readonly { id: string; aliases?: readonly string[]; pubkey: string | null }[];
  /** By agent id. Default: `stored`. */
  sources: Readonly<Record<string, KeySource>>;
  keys: Pick<AgentKeys, 'open' | 'openClient'>;
  env: Readonly<Record<string, string | undefined>>;
  clock: Clock;
  onWarning?: ((error: unknown, where: string) => void) | undefined;
}

/** The signers of the agents that have a key. `close` erases all keys. */
export interface AgentSigners {
  of(agent: string): Signer | null;
  /** Pubkeys by agent id. */
  readonly pubkeys: ReadonlyMap<string, string>;
  close(): Promise<void>;
}

/**
 * Opens the keys of all agents that have one. Throws `config_invalid`, which names the agent, if a key does not match the
 * agents file, a pubkey has no key, two agents share a key, or the passphrase is wrong.
 */
export async function signersFor(parts: SignersParts): Promise<AgentSigners> {
  const known = new Set(parts.agents.flatMap(idsOf));
  const unknown = Object.keys(parts.sources).find((name) => !known.has(name));
  if (unknown !== undefined) throw refused(unknown, 'is named in nostr.keys but is not an agent');
  const signers = new Map<string, Signer>();
  const close = async () =>
    void (await Promise.allSettled([...signers.values()].map((each) => each.close())));
  try {
    for (const agent of parts.agents) {
      const signer = await signerOf(parts, agent);
      if (!signer) continue;
      const twin = [...signers].find(([, { pubkey }]) => pubkey === signer.pubkey)?.[0];
      signers.set(agent.id, signer);
      if (twin !== undefined)
        throw refused(agent.id, `has the same key as @${twin}: each agent needs its own`);
      const { pubkey } = agent;
      if (pubkey !== null && pubkey !== signer.pubkey) {
        const why = `its key belongs to ${signer.pubkey}, but the agents file says ${pubkey}: change one of them`;
        throw refused(agent.id, `cannot sign: ${why}`);
      }
    }
  } catch (error) {
    await close();
    throw error;
  }
  return {
    of: (agent) => signers.get(agent) ?? null,
    pubkeys: new Map([...signers].map(([agent, { pubkey }]) => [agent, pubkey])),
    close,
  };
}

async function signerOf(
  { sources, keys, env, clock, onWarning }: SignersParts,
  agent: SignersParts['agents'][number],
): Promise<Signer | null> {
  const { id, pubkey } = agent;
  const named = idsOf(agent).find((each) => Object.hasOwn(sources, each));
  const source = named === undefined ? 'stored' : (sources[named] ?? 'stored');
  if (source === 'stored') {
    for (const each of idsOf(agent)) {
      const key = await keys.open(each);
      if (key) return createLocalSigner(key);
    }
    if (pubkey === null) return null;
    throw refused(id, `has a pubkey but no key: import it with "troupe nostr keys import ${id}"`);
  }
  const variable = 'env' in source ? source.env : source.bunkerEnv;
  const value = env[variable];
  if (!value) throw refused(id, `needs its key in ${variable}, which is not set`);
  if ('env' in source) return createLocalSigner(readSecretKey(value, variable));
  const clientKey = await keys.openClient(named ?? id);
  // Loaded on demand, because most troupes have no remote signer.
  const { createRemoteSigner } = await import('./remote-signer.ts');
  return createRemoteSigner({ url: value, agent: id, variable, pubkey, clientKey, clock, onWarning });
}

/** Its id, and its former ids, because the key stays under the id at which it was stored. */
function idsOf({ id, aliases = [] }: SignersParts['agents'][number]): string[] {
  return [id, ...aliases];
}

function refused(agent: string, why: string): TroupeError {
  return new TroupeError('config_invalid', `@${agent} ${why}`, { agent });
}
