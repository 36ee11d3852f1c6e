import type { PromptLayer, PromptMessage } from '../../../../src/events/index.ts';
import { type Fetched, useFetched } from '../../state/fetched.ts';

/**
 * The texts of the frozen layers, which are sent as one message. The record has no boundaries, but a hash of each text: the
 * prefix with that hash is the text. Null if this cannot be computed, such as without a secure context.
 */
export function useSystemParts(
  messages: readonly PromptMessage[],
  layers: readonly PromptLayer[],
): Fetched<Map<string, string> | null> {
  const frozen = layers.filter(
    ({ name, stability, tokens }) => stability === 'epoch' && name !== 'tools' && tokens > 0,
  );
  return useFetched(`system ${frozen.map(({ hash }) => hash).join(' ')}`, null, () =>
    partsOf(messages[0]?.content ?? '', frozen),
  );
}

async function partsOf(text: string, layers: readonly PromptLayer[]): Promise<Map<string, string> | null> {
  const parts = new Map<string, string>();
  let rest = text;
  for (const { name, hash } of layers) {
    const part = await beginningOf(rest, hash);
    if (part === null) return null;
    parts.set(name, part);
    rest = rest.slice(part.length + BETWEEN.length);
  }
  return parts;
}

const BETWEEN = '\n\n';

async function beginningOf(text: string, hash: string): Promise<string | null> {
  for (let from = 0; from <= text.length;) {
    const end = text.indexOf(BETWEEN, from);
    const part = end === -1 ? text : text.slice(0, end);
    if ((await hashOf(part)) === hash) return part;
    if (end === -1) return null;
    from = end + 1;
  }
  return null;
}

/** Hashes as the server does: the first 128 bits of SHA-256. */
async function hashOf(text: string): Promise<string | null> {
  // Missing if the page comes over plain http from another machine.
  const subtle = crypto.subtle as SubtleCrypto | undefined;
  const bytes = await subtle?.digest('SHA-256', new TextEncoder().encode(text));
  return bytes
    ? [...new Uint8Array(bytes, 0, 16)].map((byte) => byte.toString(16).padStart(2, '0')).join('')
    : null;
}
