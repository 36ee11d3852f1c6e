import type { Event, EventKind } from './event.ts';

/**
 * What an event says here that a file has brought. A file is text of strangers: whoever lays it in vouches for what was
 * said in it, and for nothing that it would have done. Each kind must say what becomes of it:
 *   `as is`    it tells what was said and done, and who took part; prompts and the page show it like any other
 *   `history`  it is shown, and has no authority: nothing waits, runs, is allowed, directed or reached because of it
 */
export const IMPORTED: Record<EventKind, 'as is' | 'history'> = {
  message: 'as is',
  step: 'as is',
  'tool.result': 'as is',
  handoff: 'as is',
  // A task of a file is nobody's here: its timers, its thread and those who waited are elsewhere.
  'delegation.opened': 'history',
  'delegation.completed': 'history',
  'delegation.aborted': 'history',
  question: 'history',
  'question.answered': 'history',
  'approval.requested': 'history',
  'approval.decided': 'history',
  // Membership is of this conversation alone, and people change it with a word.
  joined: 'as is',
  left: 'as is',
  archived: 'as is',
  reopened: 'as is',
  // Told to agents in every later turn, with the weight of the people here.
  'mode.changed': 'history',
  'phase.changed': 'history',
  'run.directive': 'history',
  'guard.stopped': 'as is',
  todos: 'as is',
  injection: 'as is',
  error: 'as is',
  // Of the view of an agent; how far they may reach is bounded where they are read (`import/admit-draft.ts`).
  compaction: 'as is',
  'compaction.started': 'as is',
  'compaction.pruned': 'as is',
  'compaction.summarising': 'as is',
  'compaction.done': 'as is',
  'compaction.failed': 'as is',
  prune: 'as is',
  baseline: 'as is',
  // Notes for people: the session that is used stands in the actor's record, which no file reaches.
  'session.started': 'as is',
  'session.resumed': 'as is',
  'session.rewound': 'as is',
  'session.compacted': 'as is',
  'session.lost': 'as is',
  'session.rebuilt': 'as is',
  'turn.started': 'as is',
  'turn.steered': 'as is',
  'turn.done': 'as is',
  'turn.failed': 'as is',
  'turn.aborted': 'as is',
  command: 'as is',
};

/** Whether a file brought it. */
export function isImported({ context }: Pick<Event, 'context'>): boolean {
  return context?.imported === true;
}

/** Whether what it says is so here. Asked by every fold from which something follows. */
export function hasAuthority(event: Pick<Event, 'context' | 'kind'>): boolean {
  return !isImported(event) || IMPORTED[event.kind] === 'as is';
}
