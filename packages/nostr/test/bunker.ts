import { generateSecretKey, getPublicKey, finalizeEvent } from 'nostr-tools/pure';
import { toBunkerURL } from 'nostr-tools/nip46';
import { decrypt, encrypt, getConversationKey } from 'nostr-tools/nip44';
import { Relay } from 'nostr-tools/relay';

export interface Bunker extends AsyncDisposable {
  url: string;
  /** Pubkey of the signing key. */
  pubkey: string;
  /** Requested methods, in order. */
  asked: string[];
  /** Pubkeys of the clients. */
  clients: Set<string>;
  behave(how: Behaviour): void;
}

/** `forge`: signs another event. `other`: signs with another key. `garbage`: sends unreadable answers. */
export type Behaviour = 'garbage' | 'sign' | 'silent' | 'refuse' | 'forge' | 'other';

const NOSTR_CONNECT = 24_133;
const SECRET = 'canary-bunker-secret';

/** A minimal remote signer (NIP-46) on a relay. */
export async function startBunker(relayUrl: string): Promise<Bunker> {
  const [own, key, other] = [generateSecretKey(), generateSecretKey(), generateSecretKey()];
  const relay = await Relay.connect(relayUrl);
  const asked: string[] = [];
  const clients = new Set<string>();
  let how: Behaviour = 'sign';

  function answer(method: string, params: string[]): { result?: string; error?: string } {
    if (method === 'connect') return params[1] === SECRET ? { result: 'ack' } : { error: 'who are you?' };
    if (how === 'refuse') return { error: `not now, ${SECRET}` };
    if (method === 'get_public_key') return { result: getPublicKey(key) };
    if (method !== 'sign_event') return { error: 'unknown' };
    const template = JSON.parse(params[0] ?? '') as Parameters<typeof finalizeEvent>[0];
    const forged = how === 'forge' ? { ...template, content: 'something else' } : template;
    return { result: JSON.stringify(finalizeEvent(forged, how === 'other' ? other : key)) };
  }

  relay.subscribe([{ kinds: [NOSTR_CONNECT], '#p': [getPublicKey(own)] }], {
    onevent(event) {
      const shared = getConversationKey(own, event.pubkey);
      const { id, method, params } = JSON.parse(decrypt(event.content, shared)) as {
        id: string;
        method: string;
        params: string[];
      };
      asked.push(method);
      clients.add(event.pubkey);
      if (how === 'silent') return;
      const content = encrypt(JSON.stringify({ id, ...answer(method, params) }), shared);
      const tags = [['p', event.pubkey]];
      const created_at = Math.floor(Date.now() / 1_000);
      const said = how === 'garbage' ? 'no cipher text' : content;
      relay
        .publish(finalizeEvent({ kind: NOSTR_CONNECT, tags, content: said, created_at }, own))
        .catch(() => {});
    },
  });

  return {
    url: toBunkerURL({ pubkey: getPublicKey(own), relays: [relayUrl], secret: SECRET }),
    pubkey: getPublicKey(key),
    asked,
    clients,
    behave: (next) => void (how = next),
    async [Symbol.asyncDispose]() {
      relay.close();
    },
  };
}
