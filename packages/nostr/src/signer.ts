import type { SignedEvent } from './nostr-event.ts';

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
