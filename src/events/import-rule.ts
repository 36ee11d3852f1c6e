import type { Event, EventKind } from './event.ts';

/**
 * The effect of imported events. The content of a file is untrusted: importing it vouches for what was said, not for what
 * it would cause.
 *   `as is`    The event records what was said and done. Prompts and the page show it like any other.
 *   `history`  The event is shown and has no authority: nothing waits, runs or is permitted because of it.
 */
export const IMPORTED: Record<EventKind, 'as is' | 'history'> = {
  message: 'as is',
  notice: 'as is',
  step: 'as is',
  'tool.result': 'as is',
  handoff: 'as is',
  // An imported task has no owner here: its timers, its thread and the waiting agent are elsewhere.
  'delegation.opened': 'history',
  'delegation.completed': 'history',
  'delegation.aborted': 'history',
  question: 'history',
  'question.answered': 'history',
  'approval.requested': 'history',
  'approval.decided': 'history',
  // Membership affects this conversation only, and people can change it at any time.
  joined: 'as is',
  left: 'as is',
  archived: 'as is',
  reopened: 'as is',
  // These would direct agents in every later turn, with the authority of the people here.
  'mode.changed': 'history',
  'phase.changed': 'history',
  'run.directive': 'history',
  'guard.stopped': 'as is',
  // The runtime reminds an agent of its list, in its own voice.
  todos: 'history',
  injection: 'as is',
  error: 'as is',
  // These change the view of one agent. The importer bounds their reach (`import/admit-draft.ts`).
  compaction: 'as is',
  'compaction.progress': 'as is',
  prune: 'as is',
  baseline: 'as is',
  // Notes for people. The session in use is in the actor's record, which no file can change.
  'session.changed': 'as is',
  'turn.started': 'as is',
  'turn.steered': 'as is',
  'turn.done': 'as is',
  'turn.failed': 'as is',
  'turn.aborted': 'as is',
  command: 'as is',
};

/** Whether an event may have effects. Every fold with consequences asks this first. */
export function hasAuthority(event: Pick<Event, 'context' | 'kind'>): boolean {
  return event.context?.imported !== true || IMPORTED[event.kind] === 'as is';
}

export function isImported({ context }: Pick<Event, 'context'>): boolean {
  return context?.imported === true;
}
