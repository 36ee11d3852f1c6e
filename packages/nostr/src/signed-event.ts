import { getEventHash, verifyEvent } from 'nostr-tools/pure';
import * as z from 'zod';
import type { SignedEvent } from './nostr-event.ts';
import type { Refused } from './relay-faults.ts';

const MAX_TAGS = 2_000;
const MAX_TAG_CHARS = 65_536;
/** Pubkeys named by one event: as many as a message may address. */
const MAX_NAMED = 256;
/** The end of the year 9999. */
const MAX_CREATED_AT = 253_402_300_799;
/** Tolerated difference between clocks. */
const MAX_AHEAD_S = 900;

/** Lone surrogates all hash alike: with them, one signature would fit several texts. */
const Text = z.string().refine((text) => text.isWellFormed());
/** Other fields are not signed and are not read. */
const Fields = z.object({
  id: z.string().regex(/^[0-9a-f]{64}$/),
  pubkey: z.string().regex(/^[0-9a-f]{64}$/),
  created_at: z.int().min(0).max(MAX_CREATED_AT),
  kind: z.int().min(0).max(65_535),
  tags: z.array(z.array(Text)),
  content: Text,
  sig: z.string().regex(/^[0-9a-f]{128}$/),
});

/**
 * Returns the event, its signature not yet verified, or the reason to refuse it. The result is a new object: nostr-tools
 * stores its verdict in a symbol property, which copies would keep.
 */
export function readEvent(raw: unknown): SignedEvent | Refused {
  if (typeof raw !== 'object' || raw === null) return 'shape';
  const tags = (raw as { tags?: unknown }).tags;
  if (Array.isArray(tags) && tags.length > MAX_TAGS) return 'tags';
  const parsed = Fields.safeParse(raw);
  if (!parsed.success) return 'shape';
  const event = parsed.data;
  let chars = 0;
  for (const tag of event.tags) for (const part of tag) chars += part.length;
  if (chars > MAX_TAG_CHARS || namedBy(event).length > MAX_NAMED) return 'tags';
  return event;
}

/** The pubkeys in `p` tags, each once, in order. */
export function namedBy({ tags }: Pick<SignedEvent, 'tags'>): string[] {
  return [...new Set(tags.flatMap(([name, value]) => (name === 'p' && value !== undefined ? [value] : [])))];
}

/** True if the event is dated too far in the future. Late events are accepted. */
export function isAhead({ created_at }: Pick<SignedEvent, 'created_at'>, nowMs: number): boolean {
  return created_at > nowMs / 1_000 + MAX_AHEAD_S;
}

/** Null if id and signature are valid. Takes about 2 ms; `openVerifier` is faster. */
export function verify({ id, pubkey, created_at, kind, tags, content, sig }: SignedEvent): Refused | null {
  const fresh = { id, pubkey, created_at, kind, tags: tags.map((tag) => [...tag]), content, sig };
  if (getEventHash(fresh) !== id) return 'id';
  return verifyEvent(fresh) ? null : 'signature';
}

/** Null if id and signature are valid. */
export type Verify = (event: SignedEvent) => Refused | null;

/** Error messages of `nostr-wasm` that are verdicts about an event. */
const VERDICTS: Readonly<Record<string, Refused>> = {
  'id is invalid': 'id',
  'pubkey is invalid': 'signature',
  'signature is invalid': 'signature',
};

/**
 * Verifies with libsecp256k1 in WebAssembly, in a third of the time of `verify`. Its memory is bounded: larger events go
 * to `verify`. Without WebAssembly all events do.
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
