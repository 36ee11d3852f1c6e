import type { Activity } from '../../events/index.ts';
import { progressInWords } from '../../projection/words.ts';

/** An activity in a few words, without its agent; null for pieces of longer texts, of which only the first one of a call is told. */
export function activityInWords(activity: Activity): string | null {
  switch (activity.kind) {
    case 'arguments':
      return activity.index === 0 && activity.text === '' ? `begins to call ${activity.name}` : null;
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
      return null;
  }
}
