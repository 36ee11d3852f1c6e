const HEX_32 = /^[0-9a-f]{64}$/;

/** An id or a pubkey as NIP-01 writes them: in lower case. */
export function isHex32(text: string | undefined): text is string {
  return text !== undefined && HEX_32.test(text);
}
