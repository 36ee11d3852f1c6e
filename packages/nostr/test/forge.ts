import type { SignedEvent } from '../src/nostr-event.ts';
import type { Refused } from '../src/relay-faults.ts';

/** A way to forge an event, and the reason for its refusal. */
export interface Forged {
  name: string;
  reason: Refused;
  forge: (event: SignedEvent) => object;
}

function flip(text: string): string {
  return (text.startsWith('0') ? '1' : '0') + text.slice(1);
}

/** A change to each field of an event, and to its JSON. */
export const FORGERIES: readonly Forged[] = [
  { name: 'id', reason: 'id', forge: (event) => ({ ...event, id: flip(event.id) }) },
  { name: 'pubkey', reason: 'id', forge: (event) => ({ ...event, pubkey: flip(event.pubkey) }) },
  { name: 'sig', reason: 'signature', forge: (event) => ({ ...event, sig: flip(event.sig) }) },
  { name: 'created_at', reason: 'id', forge: (event) => ({ ...event, created_at: event.created_at - 1 }) },
  { name: 'kind', reason: 'id', forge: (event) => ({ ...event, kind: event.kind === 1 ? 11 : 1 }) },
  { name: 'tags', reason: 'id', forge: (event) => ({ ...event, tags: [...event.tags, ['t', 'x']] }) },
  { name: 'content', reason: 'id', forge: (event) => ({ ...event, content: `${event.content}!` }) },
  { name: 'upper case', reason: 'shape', forge: (event) => ({ ...event, sig: event.sig.toUpperCase() }) },
  { name: 'type', reason: 'shape', forge: (event) => ({ ...event, content: { $gt: event.content } }) },
  { name: 'missing', reason: 'shape', forge: ({ sig: _sig, ...event }) => event },
];
