import type { SignedEvent } from './nostr-event.ts';

/** Longer ones are not kept with a message. */
export const MAX_ADDRESS_LENGTH = 1_000;

/** Of events that are replaced by newer ones: by what they are found, whatever their version. */
export function addressOf({
  kind,
  pubkey,
  tags,
}: Pick<SignedEvent, 'kind' | 'pubkey' | 'tags'>): string | null {
  const isAddressable = kind >= 30_000 && kind < 40_000;
  const isReplaceable = kind >= 10_000 && kind < 20_000;
  if (!isAddressable && !isReplaceable) return null;
  const d = isAddressable ? tags.find(([name]) => name === 'd')?.[1] : '';
  if (d === undefined) return null;
  const address = `${kind}:${pubkey}:${d}`;
  return address.length > MAX_ADDRESS_LENGTH ? null : address;
}
