import type { SignedEvent } from './nostr-event.ts';
import { finalizeEvent, getPublicKey } from 'nostr-tools/pure';

/** What is asked to be signed; the signer adds whose it is. */
export interface EventTemplate {
  kind: number;
  /** Seconds. */
  created_at: number;
  tags: string[][];
  content: string;
}

/** Signs in the name of one agent. The key is its own affair: here, encrypted, or on another machine. */
export interface Signer {
  /** Lower-case hex. */
  readonly pubkey: string;
  /** The event has exactly the fields of the template. Rejects where the key cannot be reached; it may be asked again. */
  sign(template: EventTemplate): Promise<SignedEvent>;
  /** Forgets the key. It signs nothing afterwards. */
  close(): Promise<void>;
}

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
