import { finalizeEvent, generateSecretKey, getPublicKey } from 'nostr-tools/pure';
import type { SignedEvent } from '../src/nostr-event.ts';

export interface Person {
  pubkey: string;
  /** `at`: seconds; now by default. */
  sign(event: { kind?: number; content?: string; tags?: string[][]; at?: number }): SignedEvent;
}

/** Somebody with a key of their own. What they sign is plain data, with no verdict stuck to it. */
export function person(secret: Uint8Array = generateSecretKey()): Person {
  return {
    pubkey: getPublicKey(secret),
    sign({ kind = 1, content = 'hello', tags = [], at = Math.floor(Date.now() / 1_000) }) {
      const event = finalizeEvent({ kind, content, tags, created_at: at }, secret);
      return JSON.parse(JSON.stringify(event)) as SignedEvent;
    },
  };
}
