import type { NewUser, Seen, UserMove } from './user.ts';
import { person } from './person.ts';

/** A step of a script: words of the user `User`, a move, or what is decided by what was seen. */
export type Step = string | UserMove | ((seen: Seen) => readonly Step[] | Step | undefined);

const SOMEBODY = person('user');

/**
 * A user that follows a script, one step whenever all agents are at rest. A step that is a function is asked once the steps
 * before it are done, and its own steps come in its place: that is a branch.
 *
 *     scriptedUser([mia.says('Where is my parcel?'), when(/number/, [mia.says('4711')])])
 */
export function scriptedUser(steps: readonly Step[], name = 'the script'): NewUser {
  return () => {
    const left = [...steps];
    return {
      name,
      next(seen) {
        for (let step = left.shift(); step !== undefined; step = left.shift()) {
          if (typeof step === 'string') return SOMEBODY.says(step);
          if (typeof step !== 'function') return step;
          left.unshift(...[step(seen) ?? []].flat());
        }
        return { move: 'done' };
      },
    };
  };
}

/** A branch: the first steps if the last words of an agent, or an open question, match; otherwise the second ones. */
export function when(
  heard: string | RegExp,
  steps: readonly Step[],
  otherwise: readonly Step[] = [],
): (seen: Seen) => readonly Step[] {
  return ({ said, waits }) => {
    const heardWords = [said, ...waits.map(({ task }) => task.text ?? task.tool ?? '')];
    const isHeard = (words: string) =>
      typeof heard === 'string' ? words.includes(heard) : words.search(heard) >= 0;
    return heardWords.some(isHeard) ? steps : otherwise;
  };
}
