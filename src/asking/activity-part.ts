import type { ActivityNote, LivePlace } from '../events/index.ts';
import type { Part } from './part.ts';

export function placeOf({ address, turn, attempt, step, round }: LivePlace) {
  const { conversation, agent } = address;
  return { conversation, agent, turn, provisional: true as const, attempt, step, round };
}

/** An activity as a part. `argsOf` gives the arguments of a call so far. */
export function activityPart(
  activity: ActivityNote,
  argsOf: (piece: ActivityNote & { kind: 'arguments' }) => string,
): Part {
  const at = placeOf(activity);
  switch (activity.kind) {
    case 'reasoning':
      return { type: 'reasoning', ...at, index: activity.index, text: activity.text };
    case 'arguments': {
      const { call, name } = activity;
      return { type: 'call', ...at, status: 'writing', call, name, args: argsOf(activity) };
    }
    case 'dropped': {
      const { call, name } = activity;
      return { type: 'call', ...at, status: 'dropped', call, name, args: '' };
    }
    case 'called': {
      const { call, name, args } = activity;
      return { type: 'call', ...at, status: 'running', call, name, args };
    }
    case 'progress': {
      const { call, name, text, done, total } = activity;
      const report = {
        ...(text !== undefined && { text }),
        ...(done !== undefined && { done }),
        ...(total !== undefined && { total }),
      };
      return { type: 'progress', ...at, call, name, ...report };
    }
    case 'result': {
      const { call, name, outcome, text } = activity;
      return { type: 'result', ...at, call, name, outcome, text };
    }
    case 'void':
      return { type: 'void', ...at, reason: activity.reason, all: activity.all };
  }
}
