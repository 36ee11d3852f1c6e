import { type ActivityNote, type AgentId, type Event, isAbout } from '../events/index.ts';
import type { Watcher } from '../troupe.ts';
import { activityPart, placeOf } from './activity-part.ts';
import type { Part } from './part.ts';

type Note = Parameters<Watcher>[0];

/** Notes as parts. It keeps the arguments of the calls that are being written. */
export function showParts(): (note: Note) => Part {
  /** By turn, and by call within it. */
  const written = new Map<string, Map<string, string>>();

  function argsOf({ turn, call, index, text }: ActivityNote & { kind: 'arguments' }): string {
    const calls = written.get(turn) ?? new Map<string, string>();
    written.set(turn, calls);
    const before = calls.get(call) ?? '';
    // Cutting copies, so what only grows is not cut.
    const args = (index === before.length ? before : before.slice(0, index)) + text;
    calls.set(call, args);
    return args;
  }

  function partOf(note: Exclude<Note, { type: 'event' }>): Part {
    switch (note.type) {
      case 'delta': {
        const { index, text } = note.delta;
        return { type: 'text', ...placeOf(note.delta), index, text };
      }
      case 'activity':
        return activityPart(note.activity, argsOf);
      case 'state': {
        const { conversation, agent } = note.state.address;
        return { type: 'state', conversation, agent, turn: note.state.turn, state: note.state };
      }
    }
  }

  return (note) => {
    if (note.type !== 'event') return partOf(note);
    const { event } = note;
    if (event.turn && isAbout(event, 'turnEnd')) written.delete(event.turn);
    return eventPart(event);
  };
}

function eventPart(event: Event): Part {
  const agent = event.author.kind === 'agent' ? (event.author.id as AgentId) : null;
  const at = { conversation: event.conversation, agent, turn: event.turn ?? null };
  if (event.kind === 'handoff') return { type: 'handoff', ...at, event };
  if (event.kind === 'question') return { type: 'question', ...at, event };
  if (event.kind === 'approval.requested') return { type: 'approval', ...at, event };
  return { type: 'event', ...at, event };
}
