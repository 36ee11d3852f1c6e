import { createHash } from 'node:crypto';
import { getEventHash, verifyEvent } from 'nostr-tools/pure';
import * as z from 'zod';
import { decode, npubEncode } from 'nostr-tools/nip19';
import type { Refused } from './relay-faults.ts';

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

const MAX_TAGS = 2_000;
const MAX_TAG_CHARS = 65_536;
/** Most pubkeys named by one event: as many as a message may address. */
const MAX_NAMED = 256;
/** The end of the year 9999. */
const MAX_CREATED_AT = 253_402_300_799;
/** Tolerated difference between clocks, s. */
const MAX_AHEAD_S = 900;

/** No lone surrogates: all of them hash alike, so one signature would fit several texts. */
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

/** Whether the event is dated too far in the future. Late events are accepted. */
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

/** Error messages of `nostr-wasm` that are a verdict on an event. */
const VERDICTS: Readonly<Record<string, Refused>> = {
  'id is invalid': 'id',
  'pubkey is invalid': 'signature',
  'signature is invalid': 'signature',
};

/**
 * Verifies with libsecp256k1 in WebAssembly, in a third of the time of `verify`. Its memory is bounded, so larger events go to
 * `verify`. Without WebAssembly all events do.
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

export interface Thread {
  /** Conversation id without the prefix: the id of the thread's first event, or a hash of the thread's subject. */
  root: string;
  /** The event that began the thread; null if its subject is not an event. */
  rootEvent: string | null;
  /** Id of the answered event; null if there is none. */
  parent: string | null;
  /** Matches the events of the thread. */
  filter: Filter;
}

const COMMENT = 1_111;

type Placed = Pick<SignedEvent, 'id' | 'pubkey' | 'kind' | 'tags'>;

/**
 * The thread of an event: by NIP-22 for comments, by NIP-10 for all others. An event that answers nothing begins a thread.
 * An event with an address begins the thread of its comments, whatever events it mentions.
 */
export function threadOf(event: Placed): Thread {
  const address = addressOf(event);
  if (address !== null) return threadAbout('A', address, null);
  return (event.kind === COMMENT && commentThread(event)) || noteThread(event);
}

/** The thread about an article, or about something outside Nostr. */
function threadAbout(name: 'A' | 'I', value: string, parent: string | null): Thread {
  const root = createHash('sha256').update(`${name}:${value}`).digest('hex').slice(0, 32);
  return { root, rootEvent: null, parent, filter: { [`#${name}`]: [value] } };
}

function noteThread({ id, tags }: Placed): Thread {
  const events = tags.filter(([name, value]) => name === 'e' && isHex32(value));
  const marked = (marker: string) => events.find((tag) => tag[3] === marker)?.[1];
  const [markedRoot, markedReply] = [marked('root'), marked('reply')];
  // Without markers the first tag is the root, the last is the answered event, and those in between are mentions.
  const isMarked = markedRoot !== undefined || markedReply !== undefined;
  const plain = isMarked ? [] : events.filter((tag) => tag[3] !== 'mention');
  const root = markedRoot ?? markedReply ?? plain[0]?.[1] ?? id;
  const parent = markedReply ?? markedRoot ?? plain.at(-1)?.[1] ?? null;
  return { root, rootEvent: root, parent: parent === id ? null : parent, filter: { '#e': [root] } };
}

function commentThread({ id, tags }: Placed): Thread | null {
  const valueOf = (wanted: string) => tags.find(([name]) => name === wanted)?.[1];
  const answered = tags.findLast(([name, value]) => name === 'e' && isHex32(value))?.[1] ?? null;
  const parent = answered === id ? null : answered;
  // A comment may name an article by address or by version. The address is the stable one.
  for (const name of ['A', 'I'] as const) {
    const value = valueOf(name);
    if (value === undefined || value === '' || value.length > MAX_ADDRESS_LENGTH) continue;
    return threadAbout(name, value, parent);
  }
  const root = valueOf('E');
  return isHex32(root) ? { root, rootEvent: root, parent, filter: { '#E': [root] } } : null;
}

/** Longest address that is stored with a message. */
const MAX_ADDRESS_LENGTH = 1_000;

/** The address of a replaceable event, the same for all its versions. Null for other events. */
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

const REFERENCE = /nostr:((?:npub|nprofile|note|nevent|naddr)1[02-9ac-hj-np-z]{20,4990})/g;
const MAX_REFERENCES = 100;
const ID_CHARS = 8;
const MAX_NAME = 100;

/**
 * Replaces references in a text (NIP-19, NIP-27) by readable ones: the name of an agent, or a short id. Invalid references,
 * and those after the first hundred, stay unchanged.
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
