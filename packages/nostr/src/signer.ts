import type { SignedEvent } from './nostr-event.ts';
import { finalizeEvent, getPublicKey } from 'nostr-tools/pure';

/** An event to sign. The signer adds its pubkey. */
export interface EventTemplate {
  kind: number;
  /** Seconds since the epoch. */
  created_at: number;
  tags: string[][];
  content: string;
}

/** Signs as one agent. The agent's key is in this process or on another machine. */
export interface Signer {
  /** Lower-case hex. */
  readonly pubkey: string;
  /** Returns an event with exactly the fields of the template. Rejects if the key cannot be reached; a later call may succeed. */
  sign(template: EventTemplate): Promise<SignedEvent>;
  /** Erases the key. The signer signs nothing afterwards. */
  close(): Promise<void>;
}

/** Signs with a key in this process. Owns the bytes and overwrites them on `close`. */
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
