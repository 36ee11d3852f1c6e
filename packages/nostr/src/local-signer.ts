import { finalizeEvent, getPublicKey } from 'nostr-tools/pure';
import type { Signer } from './signer.ts';

/** Signs with a key in this process. It takes the bytes over and overwrites them when it is closed. */
export function createLocalSigner(key: Uint8Array): Signer {
  const pubkey = getPublicKey(key);
  let isClosed = false;
  return {
    pubkey,
    async sign({ kind, created_at, tags, content }) {
      if (isClosed) throw new Error('this signer is closed');
      const copied = { kind, created_at, tags: tags.map((tag) => [...tag]), content };
      const { id, sig } = finalizeEvent({ ...copied }, key);
      return { id, pubkey, ...copied, sig };
    },
    async close() {
      isClosed = true;
      key.fill(0);
    },
  };
}
