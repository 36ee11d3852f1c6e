import { decode, npubEncode } from 'nostr-tools/nip19';

const REFERENCE = /nostr:((?:npub|nprofile|note|nevent|naddr)1[02-9ac-hj-np-z]{20,4990})/g;
const MAX_REFERENCES = 100;
const ID_CHARS = 8;
const MAX_NAME = 100;

/**
 * Replaces references in a text (NIP-19, NIP-27) with readable ones: the name of an agent, or a short id. Invalid
 * references and those after the first hundred stay as they are.
 */
export function readReferences(text: string, nameOf: (pubkey: string) => string | null): string {
  let found = 0;
  return text.replaceAll(REFERENCE, (whole, code: string) => {
    found += 1;
    return found > MAX_REFERENCES ? whole : (readable(code, nameOf) ?? whole);
  });
}

function readable(code: string, nameOf: (pubkey: string) => string | null): string | null {
  try {
    const reference = decode(code);
    const person = (pubkey: string) => `@${nameOf(pubkey) ?? shortNpub(pubkey)}`;
    switch (reference.type) {
      case 'npub':
        return person(reference.data);
      case 'nprofile':
        return person(reference.data.pubkey);
      case 'note':
        return `(event ${reference.data.slice(0, ID_CHARS)})`;
      case 'nevent':
        return `(event ${reference.data.id.slice(0, ID_CHARS)})`;
      case 'naddr': {
        const { kind, identifier, pubkey } = reference.data;
        return `(kind ${kind} "${identifier.slice(0, MAX_NAME)}" of ${person(pubkey)})`;
      }
      case 'nsec':
        return null;
    }
  } catch {
    return null;
  }
}

/** `npub1abcd…wxyz`, for display only. */
export function shortNpub(pubkey: string): string {
  const npub = npubEncode(pubkey);
  return `${npub.slice(0, 9)}…${npub.slice(-4)}`;
}
