import { finalizeEvent, generateSecretKey, getPublicKey } from 'nostr-tools/pure';
import type { SignedEvent } from '../src/nostr-event.ts';

export interface Person {
  pubkey: string;
  /** `at`: seconds; now by default. */
  sign(event: { kind?: number; content?: string; tags?: string[][]; at?: number }): SignedEvent;
}

/** An author with a key. Signed events are plain data, without the stored verdict of nostr-tools. */
export function person(secret: Uint8Array = generateSecretKey()): Person {
  return {
    pubkey: getPublicKey(secret),
    sign({ kind = 1, content = 'hello', tags = [], at = Math.floor(Date.now() / 1_000) }) {
      const event = finalizeEvent({ kind, content, tags, created_at: at }, secret);
      return JSON.parse(JSON.stringify(event)) as SignedEvent;
    },
  };
}
