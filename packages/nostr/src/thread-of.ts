import { createHash } from 'node:crypto';
import { type Filter, isHex32, type SignedEvent } from './nostr-event.ts';

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
  // Without markers the first tag is the root, the last is the answered event, and those between are mentions.
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
  // A comment may name an article by address and by version. The address is stable.
  for (const name of ['A', 'I'] as const) {
    const value = valueOf(name);
    if (value === undefined || value === '' || value.length > MAX_ADDRESS_LENGTH) continue;
    return threadAbout(name, value, parent);
  }
  const root = valueOf('E');
  return isHex32(root) ? { root, rootEvent: root, parent, filter: { '#E': [root] } } : null;
}

/** Longer addresses are not stored with a message. */
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
