import { parseTurnId } from '../events/index.ts';
import type { Namespace } from './driver.ts';

/** A range of keys that contains the entries of a conversation, perhaps among others. `isOwn` selects its entries. */
interface KeyPlace {
  namespace: Namespace;
  after: string;
  before: string;
  isOwn: (key: string) => boolean;
}

/**
 * The entries of a conversation, by the form of their keys:
 *  journal   `<turn>/<step>`, `<turn>/<step>/relief.<n>`, and `compaction/<conversation>/<n>`
 *  effect    `<turn>/<step>.<index>`
 *  prompt    `<turn>:<step>`
 *  artifact  `<conversation>/<id>`
 *  derived   `<conversation>/<key>`
 * A turn is `<conversation>:<agent>:<n>`, and a conversation id may contain ':'. So keys of conversation `a:b` lie in the
 * range of `a`, and only the turn, split from the right, tells to which conversation a key belongs.
 */
export function placesOf(conversation: string): KeyPlace[] {
  const isTurn = (text: string) => parseTurnId(text)?.conversation === conversation;
  const ofTurns = { after: `${conversation}:`, before: `${conversation};` };
  const isOwn = (key: string) => isTurn(key.split('/', 1)[0] ?? '');
  const all = () => true;
  return [
    { namespace: 'journal', ...ofTurns, isOwn },
    {
      namespace: 'journal',
      after: `compaction/${conversation}/`,
      before: `compaction/${conversation}0`,
      isOwn: all,
    },
    { namespace: 'effect', ...ofTurns, isOwn },
    { namespace: 'prompt', ...ofTurns, isOwn: (key) => isTurn(key.slice(0, key.lastIndexOf(':'))) },
    // '0' is the character after '/', ';' the one after ':'.
    { namespace: 'artifact', after: `${conversation}/`, before: `${conversation}0`, isOwn: all },
    { namespace: 'derived', after: `${conversation}/`, before: `${conversation}0`, isOwn: all },
  ];
}
