import { parseTurnId } from '../events/index.ts';
import type { Namespace } from './driver.ts';

/** Keys of one shelf of one tenant: `after` < key < `before`, at most `limit`. */
export interface KeyRange {
  tenant: string;
  shelf: Namespace;
  after: string;
  before: string;
  limit: number;
}

/** Where registers of a conversation may stand, and which of those that stand there are its own. */
export interface KeyPlace {
  shelf: Namespace;
  after: string;
  before: string;
  isOwn: (key: string) => boolean;
}

/**
 * The registers that belong to a conversation, by how their keys are made:
 *  journal   `<turn>/<step>`, `<turn>/<step>/relief.<n>`, and `compaction/<conversation>/<n>`
 *  effect    `<turn>/<step>.<index>`
 *  prompt    `<turn>:<step>`
 *  artifact  `<conversation>/<id>`
 * A turn is `<conversation>:<agent>:<n>`, and a conversation may hold ':' as well: the keys of `a` stand among those of
 * `a:b`, and only the turn that is split from the right tells whose they are.
 */
export function placesOf(conversation: string): KeyPlace[] {
  const isTurn = (text: string) => parseTurnId(text)?.conversation === conversation;
  const ofTurns = { after: `${conversation}:`, before: `${conversation};` };
  const isOwn = (key: string) => isTurn(key.split('/', 1)[0] ?? '');
  const all = () => true;
  return [
    { shelf: 'journal', ...ofTurns, isOwn },
    {
      shelf: 'journal',
      after: `compaction/${conversation}/`,
      before: `compaction/${conversation}0`,
      isOwn: all,
    },
    { shelf: 'effect', ...ofTurns, isOwn },
    { shelf: 'prompt', ...ofTurns, isOwn: (key) => isTurn(key.slice(0, key.lastIndexOf(':'))) },
    // '0' is the character after '/', ';' the one after ':'.
    { shelf: 'artifact', after: `${conversation}/`, before: `${conversation}0`, isOwn: all },
  ];
}
