/** The seven signed fields of NIP-01, and nothing else. */
export interface SignedEvent {
  readonly id: string;
  readonly pubkey: string;
  /** Seconds since the epoch, as stated by the author. */
  readonly created_at: number;
  readonly kind: number;
  readonly tags: readonly (readonly string[])[];
  readonly content: string;
  readonly sig: string;
}

/** Filter of a request to a relay (NIP-01). */
export interface Filter {
  ids?: readonly string[];
  kinds?: readonly number[];
  authors?: readonly string[];
  since?: number;
  until?: number;
  limit?: number;
  [tag: `#${string}`]: readonly string[] | undefined;
}

const HEX_32 = /^[0-9a-f]{64}$/;

/** An id or a pubkey as NIP-01 writes them: in lower case. */
export function isHex32(text: string | undefined): text is string {
  return text !== undefined && HEX_32.test(text);
}
