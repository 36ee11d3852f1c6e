import type { Event, EventKind, EventOf } from './event.ts';

/** A subject that an event concerns. Each aspect has at least one fold, or one table of texts, over all its kinds. */
export type Aspect =
  /** Has text for a prompt, a search or a summary. */
  | 'words'
  /** A prompt may show the event. */
  | 'prompt'
  /** A prompt may show the event to its author as the author's own words. */
  | 'own'
  /** Changes membership. */
  | 'members'
  /** Advances the run of a workflow. */
  | 'run'
  /** Opens a task. */
  | 'taskOpening'
  /** Ends a task. */
  | 'taskEnd'
  /** Changes the task book. */
  | 'book'
  /** Begins, continues or ends a turn. */
  | 'turn'
  /** Ends a turn. */
  | 'turnEnd'
  /** Changes the state of the whole conversation. */
  | 'conversation'
  /** Concerns the compaction of one agent's view. */
  | 'compaction'
  /** Bookkeeping that people see as one line. */
  | 'upkeep'
  /** The body has counts or seqs of its conversation. */
  | 'counts'
  /** The body has ids of turns, events or threads. */
  | 'ids'
  /** A terminal that waits for an answer shows the event as one line. */
  | 'announced';

/**
 * The aspects of every kind. A new kind does not compile until it is listed here, nor until every switch over one of its
 * aspects handles it.
 */
const ASPECTS = {
  message: ['words', 'prompt', 'own', 'members', 'run', 'turn'],
  notice: [],
  step: ['words', 'prompt', 'own', 'turn', 'counts'],
  'tool.result': ['words', 'prompt', 'own', 'run', 'turn'],
  handoff: ['words', 'prompt', 'own', 'run', 'turn'],
  'delegation.opened': ['words', 'prompt', 'taskOpening', 'book', 'ids', 'announced'],
  'delegation.completed': ['words', 'prompt', 'taskEnd', 'book'],
  'delegation.aborted': ['words', 'prompt', 'taskEnd', 'book'],
  question: ['words', 'taskOpening', 'book', 'announced'],
  'question.answered': ['words', 'prompt', 'taskEnd', 'book'],
  'approval.requested': ['words', 'taskOpening', 'book', 'announced'],
  'approval.decided': ['words', 'prompt', 'taskEnd', 'book'],
  joined: ['words', 'members', 'upkeep'],
  left: ['words', 'members', 'upkeep'],
  'mode.changed': ['words', 'conversation', 'upkeep'],
  'phase.changed': ['words', 'prompt', 'conversation'],
  'run.directive': ['words', 'run', 'announced'],
  'guard.stopped': ['announced'],
  todos: ['book'],
  archived: ['conversation', 'upkeep'],
  reopened: ['conversation', 'upkeep'],
  injection: ['words', 'prompt'],
  error: ['turn'],
  compaction: ['compaction', 'upkeep', 'counts'],
  'compaction.progress': ['compaction', 'upkeep'],
  prune: ['upkeep', 'ids'],
  baseline: ['compaction', 'upkeep', 'counts', 'ids'],
  'session.changed': [],
  'turn.started': ['book', 'turn', 'counts'],
  'turn.steered': ['turn', 'counts'],
  'turn.done': ['book', 'turn', 'turnEnd', 'counts'],
  'turn.failed': ['words', 'prompt', 'own', 'book', 'turn', 'turnEnd', 'counts'],
  'turn.aborted': ['words', 'prompt', 'own', 'book', 'turn', 'turnEnd', 'counts'],
  command: ['words', 'prompt', 'book', 'turn', 'conversation', 'upkeep', 'counts', 'ids'],
} as const satisfies Record<EventKind, readonly Aspect[]>;

type Aspects = typeof ASPECTS;

/** The kinds that have an aspect. */
export type KindAbout<A extends Aspect> = {
  [K in EventKind]: A extends Aspects[K][number] ? K : never;
}[EventKind];

const KINDS = new Map<Aspect, Set<string>>();
for (const [kind, aspects] of Object.entries(ASPECTS))
  for (const aspect of aspects) KINDS.set(aspect, (KINDS.get(aspect) ?? new Set()).add(kind));

/** Whether an event has an aspect. An event of an unknown kind has none. */
export function isAbout<E extends { kind: EventKind }, A extends Aspect>(
  event: E,
  aspect: A,
): event is Extract<E, { kind: KindAbout<A> }> {
  return KINDS.get(aspect)?.has(event.kind) ?? false;
}

/** Whether an event ends a task. */
export function isTaskEnd(event: Pick<Event, 'kind'>): boolean {
  return isAbout(event, 'taskEnd');
}

/** A function for each of several kinds. A missing kind does not compile. */
export type ByKind<K extends EventKind, R> = { readonly [P in K]: (event: EventOf<P>) => R };

/** Calls the function for the kind of an event. Undefined if the table lacks the kind. */
export function forKind<K extends EventKind, R>(table: ByKind<K, R>, event: Event): R | undefined {
  if (!Object.hasOwn(table, event.kind)) return undefined;
  return (table[event.kind as K] as (event: Event) => R)(event);
}
