import type { Event, EventKind, EventOf } from './event.ts';

/** What an event has to do with. Each aspect is folded, or put into words, somewhere. */
export type Aspect =
  /** Somebody may read words of it: in a prompt, a search, a summary. */
  | 'words'
  /** A prompt may show it. */
  | 'prompt'
  /** A prompt may show it to its author, as its own words. */
  | 'own'
  /** Who takes part. */
  | 'members'
  /** The runs of workflows. */
  | 'run'
  /** A task is opened, or ends. */
  | 'taskOpening'
  | 'taskEnd'
  /** The book of tasks changes. */
  | 'book'
  /** A turn begins, goes on or ends. */
  | 'turn'
  | 'turnEnd'
  /** What holds for the conversation as a whole changes. */
  | 'conversation'
  /** An agent makes room in its view. */
  | 'compaction'
  /** Bookkeeping that people are told in a line. */
  | 'upkeep'
  /** Its body has counts or seqs of its conversation. */
  | 'counts'
  /** Its body has ids of turns, events or threads. */
  | 'ids'
  /** Who waits for an answer at a terminal is told of it in a line. */
  | 'announced';

/**
 * The aspects of every kind. A new kind does not compile until they are named here, and then the switches over each of
 * those aspects do not until they say what becomes of it.
 */
const ASPECTS = {
  message: ['words', 'prompt', 'own', 'members', 'run', 'turn'],
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
  'compaction.started': ['compaction', 'upkeep'],
  'compaction.pruned': ['compaction', 'upkeep'],
  'compaction.summarising': ['compaction', 'upkeep'],
  'compaction.done': ['compaction', 'upkeep'],
  'compaction.failed': ['compaction', 'upkeep'],
  prune: ['upkeep', 'ids'],
  baseline: ['compaction', 'upkeep', 'counts', 'ids'],
  'session.started': [],
  'session.resumed': [],
  'session.rewound': [],
  'session.compacted': [],
  'session.lost': [],
  'session.rebuilt': [],
  'turn.started': ['book', 'turn', 'counts'],
  'turn.steered': ['turn', 'counts'],
  'turn.done': ['book', 'turn', 'turnEnd', 'counts'],
  'turn.failed': ['words', 'prompt', 'own', 'book', 'turn', 'turnEnd', 'counts'],
  'turn.aborted': ['words', 'prompt', 'own', 'book', 'turn', 'turnEnd', 'counts'],
  command: ['words', 'prompt', 'book', 'turn', 'conversation', 'upkeep', 'counts', 'ids'],
} as const satisfies Record<EventKind, readonly Aspect[]>;

type Aspects = typeof ASPECTS;

/** The kinds with an aspect. */
export type KindAbout<A extends Aspect> = {
  [K in EventKind]: A extends Aspects[K][number] ? K : never;
}[EventKind];

const KINDS = new Map<Aspect, Set<string>>();
for (const [kind, aspects] of Object.entries(ASPECTS))
  for (const aspect of aspects) KINDS.set(aspect, (KINDS.get(aspect) ?? new Set()).add(kind));

/** Whether an event has an aspect. One of a kind that this version does not know has none. */
export function isAbout<E extends { kind: EventKind }, A extends Aspect>(
  event: E,
  aspect: A,
): event is Extract<E, { kind: KindAbout<A> }> {
  return KINDS.get(aspect)?.has(event.kind) ?? false;
}

/** Whether an event ends a task: what its owner is given when it has waited for enough. */
export function isTaskEnd(event: Pick<Event, 'kind'>): boolean {
  return isAbout(event, 'taskEnd');
}

/** A function for each of several kinds. A record, so that a kind without one does not compile. */
export type ByKind<K extends EventKind, R> = { readonly [P in K]: (event: EventOf<P>) => R };

/** Calls the function for the kind of an event. Undefined for a kind that the table lacks. */
export function forKind<K extends EventKind, R>(table: ByKind<K, R>, event: Event): R | undefined {
  if (!Object.hasOwn(table, event.kind)) return undefined;
  return (table[event.kind as K] as (event: Event) => R)(event);
}
