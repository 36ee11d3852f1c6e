import type { RemoteNote } from '../../http/api/client.ts';
import { progressInWords } from '../../library/projection/words.ts';

/** What happens in a turn. */
export type TurnFrame = Exclude<RemoteNote, { type: 'state' }>;

/** Words for what happens in turns. Of the pieces of a call only the first is told. */
export function createActivityWords(): (note: TurnFrame) => string | null {
  /** The call that each agent began last. An agent writes one call after the other. */
  const begun = new Map<string, string>();
  return (note) => {
    if (note.type !== 'arguments') return activityInWords(note);
    const { conversation, agent, turn, attempt, step, round, call } = note;
    const [key, place] = [`${conversation} ${agent}`, `${turn} ${attempt} ${step} ${round} ${call}`];
    if (begun.get(key) === place) return null;
    if (begun.size >= MAX_AGENTS) begun.clear();
    begun.set(key, place);
    return `begins to call ${note.name}`;
  };
}

/** Agents whose last call is known. A stream over all conversations has any number. */
const MAX_AGENTS = 10_000;

/** It in a few words, without its agent; null for pieces of longer texts. */
function activityInWords(note: TurnFrame): string | null {
  switch (note.type) {
    case 'dropped':
      return `${note.name} does not run: the call is not finished`;
    case 'called':
      return `runs ${note.name} ${note.args}`;
    case 'progress':
      return `${note.name}: ${progressInWords(note)}`;
    case 'result':
      return `${note.name} ${note.outcome}: ${note.text}`;
    case 'void':
      return `what was said so far does not count: ${note.reason}`;
    case 'text':
    case 'reasoning':
    case 'arguments':
      return null;
  }
}
