import { addressOf, isHex32 } from './nostr-event.ts';
import type { Place } from './published.ts';
import type { EventTemplate } from './signer.ts';
import { type Event, eventOf, type IntegrationTroupe } from './troupe.ts';

/** An agent's reply and its place in the thread. All fields were determined by code; none is read from text. */
export interface Reply {
  content: string;
  /** Time of the message, ms. */
  at: number;
  /** Pubkey of the agent. */
  self: string;
  parent: Place;
  /** Id of the event that began the conversation, if an event did, and the event's place if known. */
  rootId: string | null;
  root: Place | null;
  /** Pubkeys of the addressees. */
  to: readonly string[];
  /** Pubkeys of all our agents. */
  ours: ReadonlySet<string>;
}

const NOTE = 1;
const COMMENT = 1111;
/** Most people named by one reply: a thread of thousands must not be notified of every message. */
const MAX_PEOPLE = 50;

/**
 * The unsigned event of a reply. The same reply gives the same event, so its id stays the same when it is signed again.
 *  C1  Notes (kind 1) are answered by notes, NIP-10; everything else by comments (kind 1111), NIP-22.
 *  C2  `p` tags name the author of the answered event, the people it names, and the addressees of the reply. They never
 *      name the agent itself, and name another of our agents only as an addressee: otherwise two agents would answer each
 *      other forever.
 *  C3  Text that looks like a mention adds no tag.
 */
export function composeReply(reply: Reply): EventTemplate {
  const { at, content, parent } = reply;
  const isNote = parent.kind === NOTE;
  const tags = isNote ? noteTags(reply) : commentTags(reply);
  for (const pubkey of peopleOf(reply)) tags.push(['p', pubkey]);
  return { kind: isNote ? NOTE : COMMENT, created_at: Math.floor(at / 1_000), tags, content };
}

function noteTags({ parent, rootId, root }: Reply): string[][] {
  if (rootId === null || parent.id === rootId) return [marked(parent, 'root')];
  const first = root ? marked(root, 'root') : ['e', rootId, '', 'root'];
  return [first, marked(parent, 'reply')];
}

function marked(place: Place, marker: 'root' | 'reply'): string[] {
  return ['e', place.id, hintOf(place), marker, place.pubkey];
}

function commentTags({ parent, rootId, root }: Reply): string[][] {
  const { id, kind, pubkey } = parent;
  const address = addressOf(parent);
  return [
    ...(kind === COMMENT ? inherited(parent, rootId, root) : rootTags(parent)),
    ...(address === null ? [] : [['a', address, hintOf(parent), pubkey]]),
    ['e', id, hintOf(parent), pubkey],
    ['k', String(kind)],
  ];
}

function rootTags(root: Place): string[][] {
  const { id, kind, pubkey } = root;
  const address = addressOf(root);
  const scope = address === null ? ['E', id] : ['A', address];
  return [
    [...scope, hintOf(root), pubkey],
    ['K', String(kind)],
    ['P', pubkey],
  ];
}

/** A comment on a comment has the same root. */
function inherited(parent: Place, rootId: string | null, root: Place | null): string[][] {
  const tags = ['E', 'A', 'I', 'K', 'P'].flatMap((name) => {
    const found = parent.tags.find((tag) => tag[0] === name && (tag[1] ?? '') !== '');
    return found ? [[...found]] : [];
  });
  if (tags.some(([name]) => name === 'E' || name === 'A' || name === 'I')) return tags;
  if (root) return rootTags(root);
  return rootId === null ? [] : [['E', rootId, '']];
}

function peopleOf({ parent, self, to, ours }: Reply): string[] {
  const addressed = new Set(to);
  const named = parent.tags.flatMap(([name, pubkey]) =>
    name === 'p' && pubkey !== undefined ? [pubkey] : [],
  );
  const people = [parent.pubkey, ...named, ...to].filter(
    (pubkey) => isHex32(pubkey) && pubkey !== self && (!ours.has(pubkey) || addressed.has(pubkey)),
  );
  return [...new Set(people)].slice(0, MAX_PEOPLE);
}

/** Relay hint. A URL with more than a host and a path may hold a secret, and is not published. */
function hintOf({ relay }: Place): string {
  const url = URL.canParse(relay) ? new URL(relay) : null;
  const isPlain = url && /^wss?:$/.test(url.protocol) && url.username === '' && url.search === '';
  return isPlain ? `${url.protocol}//${url.host}${url.pathname}` : '';
}

/** Number of events read at a time, backwards. */
const PAGE = 200;
/** Most events searched backwards for the message that an agent may have answered. */
const MAX_BACK = 1_000;
/** Most turns followed through chained delegations. */
const MAX_TURNS = 16;

export type LogReader = Pick<IntegrationTroupe, 'events'>;

/**
 * Messages that an agent may have answered, likeliest first: the one that it replies to, the inputs of its turn, newest first,
 * and the last message of a person. An input from another agent's turn leads on to the inputs of that turn.
 */
export async function* answered(log: LogReader, said: Event): AsyncGenerator<Event, void> {
  yield* repliedTo(log, said);
  yield* inputsOf(log, said, 0);
  const person = await lastBefore(
    log,
    said,
    ({ kind, author }) => kind === 'message' && author.kind === 'user',
  );
  if (person) yield person;
}

async function* repliedTo(log: LogReader, event: Event): AsyncGenerator<Event, void> {
  const { replyTo } = event;
  if (replyTo === undefined) return;
  const found = await lastBefore(log, event, ({ id }) => id === replyTo);
  if (found) yield found;
}

/** The inputs of the turn that produced an event. */
async function* inputsOf(log: LogReader, event: Event, depth: number): AsyncGenerator<Event, void> {
  const { turn, conversation } = event;
  if (turn === undefined || depth >= MAX_TURNS) return;
  const found = await lastBefore(log, event, (each) => each.kind === 'turn.started' && each.turn === turn);
  const started = found && eventOf(found, 'turn.started');
  for (const seq of started?.body.inputs.toReversed() ?? []) {
    const { events } = await log.events(conversation, { after: seq - 1, limit: 1 });
    const [input] = events;
    if (input?.kind === 'message') {
      yield input;
      // An operator may have passed on another message.
      yield* repliedTo(log, input);
    } else if (input) yield* inputsOf(log, await openingOf(log, input), depth + 1);
  }
}

/** The event that opened the delegation which this event ends; any other event itself. */
async function openingOf(log: LogReader, event: Event): Promise<Event> {
  if (event.kind !== 'delegation.ended') return event;
  const { delegation } = event.body;
  const opened = await lastBefore(
    log,
    event,
    (each) => eventOf(each, 'delegation.opened')?.body.delegation === delegation,
  );
  return opened ?? event;
}

async function lastBefore(
  log: LogReader,
  { conversation, seq }: Event,
  isIt: (event: Event) => boolean,
): Promise<Event | null> {
  for (let upTo = seq - 1; upTo > 0 && seq - upTo < MAX_BACK; upTo -= PAGE) {
    const after = Math.max(0, upTo - PAGE);
    let found: Event | undefined;
    // A page of large events is short.
    for (let at = after; at < upTo;) {
      const { events } = await log.events(conversation, { after: at, limit: upTo - at });
      found = events.findLast(isIt) ?? found;
      at = events.at(-1)?.seq ?? upTo;
    }
    if (found) return found;
  }
  return null;
}
