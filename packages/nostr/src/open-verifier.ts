import type { SignedEvent } from './nostr-event.ts';
import type { Refused } from './refused.ts';
import { verify } from './signed-event.ts';

/** Null if the id is the event's and the signature is its author's. */
export type Verify = (event: SignedEvent) => Refused | null;

/** What libsecp256k1 says of an event that it could look at, in the words of `nostr-wasm`. */
const VERDICTS: Readonly<Record<string, Refused>> = {
  'id is invalid': 'id',
  'pubkey is invalid': 'signature',
  'signature is invalid': 'signature',
};

/**
 * `verify` by libsecp256k1 in WebAssembly, which takes a third of the time. An event that it cannot look at (its memory is
 * bounded) is for `verify`, and so are all where there is no WebAssembly.
 */
export async function openVerifier(): Promise<Verify> {
  const nostr = await open();
  if (!nostr) return verify;
  return (event) => {
    try {
      nostr.verifyEvent({ ...event, tags: event.tags.map((tag) => [...tag]) });
      return null;
    } catch (error) {
      const verdict = error instanceof Error ? VERDICTS[error.message] : undefined;
      return verdict ?? verify(event);
    }
  };
}

async function open() {
  try {
    const { initNostrWasm } = await import('nostr-wasm');
    return await initNostrWasm();
  } catch {
    return null;
  }
}
