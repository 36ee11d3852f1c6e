import type { Activity, ActorAddress, LivePlace } from '../../events/index.ts';
import { progressInWords } from '../../projection/words.ts';

/** Words for the activities of a stream. Of the pieces of a call only the first is told. */
export function createActivityWords(): (note: Place & Activity) => string | null {
  /** The call that each agent began last. An agent writes one call after the other. */
  const begun = new Map<string, string>();
  return (note) => {
    if (note.kind !== 'arguments') return activityInWords(note);
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

type Place = Pick<LivePlace, 'turn' | 'attempt' | 'step' | 'round'> &
  Pick<ActorAddress, 'conversation' | 'agent'>;

/** An activity in a few words, without its agent; null for pieces of longer texts. */
function activityInWords(activity: Activity): string | null {
  switch (activity.kind) {
    case 'dropped':
      return `${activity.name} does not run: the call is not finished`;
    case 'called':
      return `runs ${activity.name} ${activity.args}`;
    case 'progress':
      return `${activity.name}: ${progressInWords(activity)}`;
    case 'result':
      return `${activity.name} ${activity.outcome}: ${activity.text}`;
    case 'void':
      return `what was said so far does not count: ${activity.reason}`;
    case 'reasoning':
    case 'arguments':
      return null;
  }
}
