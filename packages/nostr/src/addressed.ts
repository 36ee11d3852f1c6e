import type { SignedEvent } from './nostr-event.ts';
import { namedBy } from './signed-event.ts';

/** Agents by pubkey. */
export type OurAgents = ReadonlyMap<string, { id: string; name: string }>;

/**
 * Ids of our agents that an event names, each once. What one of them has signed addresses none: it is our own word,
 * brought back. Nothing but `p` tags counts, whatever the text says.
 */
export function addressedBy(event: Pick<SignedEvent, 'pubkey' | 'tags'>, agents: OurAgents): string[] {
  if (agents.has(event.pubkey)) return [];
  return namedBy(event).flatMap((pubkey) => agents.get(pubkey)?.id ?? []);
}
