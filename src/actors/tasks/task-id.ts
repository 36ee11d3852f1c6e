import { hashText } from '../../context/index.ts';
import { ConversationId, type TurnId } from '../../events/index.ts';
import type { CallPlace } from './call-effects.ts';

const ID_DIGITS = 12;
/** Of a conversation id; what is left after it is for the task. */
const MOST_ROOT = 100;

/** The same for every attempt at the turn: who opens a task again opens the same one. */
export function taskIdOf(kind: 'd' | 'q' | 'a', turn: TurnId, { step, index }: CallPlace): string {
  return `${kind}-${hashText(`${turn}/${step}.${index}`).slice(0, ID_DIGITS)}`;
}

/** The conversation that a task is worked on in: named after the first one of all, however deep it is. */
export function threadOf(root: ConversationId, task: string): ConversationId {
  const stem =
    root.length <= MOST_ROOT ? root : `${root.slice(0, MOST_ROOT - 9)}.${hashText(root).slice(0, 8)}`;
  return ConversationId.parse(`${stem}.${task}`);
}
