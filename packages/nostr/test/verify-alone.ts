import { createHash } from 'node:crypto';
import { schnorr } from '@noble/curves/secp256k1.js';

/**
 * Verifies by the letter of NIP-01, without our code and without nostr-tools: the SHA-256 of the canonical text, escaped by
 * hand, and a BIP-340 signature of it. Returns the problem, or null.
 */
export function problemOf(event: unknown): string | null {
  const { id, pubkey, created_at, kind, tags, content, sig, ...rest } = event as Record<string, unknown>;
  if (Object.keys(rest).length > 0) return `unsigned fields: ${Object.keys(rest).join(', ')}`;
  for (const [text, digits] of [
    [id, 64],
    [pubkey, 64],
    [sig, 128],
  ] as const) {
    if (typeof text !== 'string' || text.length !== digits || !/^[0-9a-f]+$/.test(text))
      return 'not lower-case hex';
  }
  if (!Number.isInteger(created_at) || !Number.isInteger(kind)) return 'not integers';
  const rows = (tags as string[][]).map((tag) => `[${tag.map(quoted).join(',')}]`).join(',');
  const text = `[0,${quoted(String(pubkey))},${String(created_at)},${String(kind)},[${rows}],${quoted(String(content))}]`;
  const hash = createHash('sha256').update(text, 'utf8').digest();
  if (hash.toString('hex') !== id) return `the id is not the hash of ${text}`;
  const bytes = (hex: unknown) => Uint8Array.from(Buffer.from(String(hex), 'hex'));
  return schnorr.verify(bytes(sig), hash, bytes(pubkey)) ? null : 'the signature does not match the id';
}

const ESCAPES: Record<string, string> = {
  '\n': '\\n',
  '"': '\\"',
  '\\': '\\\\',
  '\r': '\\r',
  '\t': '\\t',
  '\b': '\\b',
  '\f': '\\f',
};

function quoted(text: string): string {
  return `"${text.replace(/[\n"\\\r\t\b\f]/g, (mark) => ESCAPES[mark] ?? mark)}"`;
}
