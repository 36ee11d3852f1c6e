import { decode } from 'nostr-tools/nip19';
import { getPublicKey } from 'nostr-tools/pure';
import { TroupeError } from './troupe.ts';

const HEX = /^[0-9a-f]{64}$/i;

/**
 * The bytes of a secret key, written as `nsec1…` or 64 hex digits. Throws `config_invalid`, which names `where` the text
 * came from and never the text: parsers put it in their messages, so nothing of theirs is passed on.
 */
export function readSecretKey(text: string, where: string): Uint8Array {
  const key = bytesOf(text.trim());
  if (key && pubkeyOf(key) !== null) return key;
  throw new TroupeError('config_invalid', `${where} is no secret key: it must be nsec1… or 64 hex digits`, {
    where,
  });
}

function bytesOf(text: string): Uint8Array | null {
  if (HEX.test(text)) return Uint8Array.from(Buffer.from(text, 'hex'));
  try {
    const { type, data } = decode(text);
    return type === 'nsec' ? data : null;
  } catch {
    // Its message holds the text.
    return null;
  }
}

/** Null where the bytes are none of a key: zero, or beyond the order of the curve. */
function pubkeyOf(key: Uint8Array): string | null {
  try {
    return getPublicKey(key);
  } catch {
    return null;
  }
}
