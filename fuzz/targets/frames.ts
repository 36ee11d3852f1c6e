import { finalizeEvent } from 'nostr-tools/pure';
import { pick, type Random } from '../../sim/random.ts';
import { openVerifier, readEvent } from '../../packages/nostr/src/nostr-event.ts';
import { readFrame } from '../../packages/nostr/src/relay-socket.ts';
import { mutate, mutateText } from '../mutate.ts';
import { Broken, type Target } from '../target.ts';

/**
 * What relays send.
 * N1  A frame is read or refused, and so is the event in it; nothing is thrown.
 * N2  An accepted event survives a round trip through JSON, and has no unsigned field.
 * N3  A mutated event fails verification, unless all signed fields are unchanged.
 */
export interface FrameInput {
  text: string;
  encoding: 'utf8' | 'latin1';
  /** Signatures are slow, so only some are verified. */
  verified: boolean;
}

/** The limit advertised to relays; a larger frame is refused before it is parsed. */
const MAX_EVENT_BYTES = 65_536;
/** Characters: three times the limit. Handing over a longer frame takes longer than refusing it. */
const LONGEST = 200_000;
const VERIFIED_SHARE = 0.02;
const verify = await openVerifier();
const KEY = new Uint8Array(32).fill(7);
const SIGNED = [
  signed(
    1,
    [
      ['p', 'a'.repeat(64)],
      ['e', 'b'.repeat(64), 'wss://relay.example', 'root'],
    ],
    'hello nostr:npub1x',
  ),
  signed(
    1111,
    [
      ['K', '11'],
      ['E', 'c'.repeat(64)],
    ],
    'a comment',
  ),
  signed(11, [['subject', 'x']], ''),
];
const IDS = new Set(SIGNED.map(({ id }) => id));

export function framesTarget(read: typeof readEvent = readEvent): Target<FrameInput> {
  return {
    name: 'frames',
    keepKeys: true,
    make: makeFrame,
    run({ text, encoding, verified }) {
      const frame = readFrame(Buffer.from(text, encoding), MAX_EVENT_BYTES);
      if (frame.type === 'refused') return frame.reason;
      if (frame.type !== 'EVENT') return 'accepted';
      const event = read(frame.event);
      if (typeof event === 'string') return event;
      if (Object.keys(event).toSorted().join() !== 'content,created_at,id,kind,pubkey,sig,tags')
        throw new Broken('an event has an unsigned field');
      const again = read(JSON.parse(JSON.stringify(event)));
      if (JSON.stringify(again) !== JSON.stringify(event))
        throw new Broken('an event is read again as another');
      if (!verified) return 'accepted';
      const refused = verify(event);
      if (refused === null && !IDS.has(event.id))
        throw new Broken(`a changed event is verified: ${event.id}`);
      return refused ?? 'verified';
    },
  };
}

function makeFrame(random: Random): FrameInput {
  const event = pick(random, SIGNED);
  const frames: unknown[] = [
    ['EVENT', 'sub', random() < 0.1 ? event : mutate(random, event)],
    ['EVENT', 'sub', random() < 0.5 ? { ...event, tenant: 'x', conversationId: 'y' } : mutate(random, event)],
    ['EOSE', 'sub'],
    ['CLOSED', 'sub', 'auth-required: x'],
    ['OK', event.id, true, ''],
    ['NOTICE', 'slow down'],
    ['AUTH', 'challenge'],
  ];
  const frame = random() < 0.7 ? pick(random, frames.slice(0, 2)) : mutate(random, pick(random, frames));
  const text = JSON.stringify(frame) ?? '';
  return {
    text: (random() < 0.85 ? text : mutateText(random, text)).slice(0, LONGEST),
    encoding: random() < 0.95 ? 'utf8' : 'latin1',
    verified: random() < VERIFIED_SHARE,
  };
}

/** Plain data, without the symbol that nostr-tools leaves on events it has signed. */
function signed(kind: number, tags: string[][], content: string) {
  const event = finalizeEvent({ kind, tags, content, created_at: 1_700_000_000 }, KEY);
  const { id, pubkey, created_at, sig } = event;
  return { id, pubkey, created_at, kind, tags, content, sig };
}
