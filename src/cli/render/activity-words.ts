import type { Activity } from '../../events/index.ts';
import { progressInWords } from '../../projection/words.ts';

/** An activity in a few words, without its agent; null for pieces of longer texts. */
export function activityInWords(activity: Activity): string | null {
  switch (activity.kind) {
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
