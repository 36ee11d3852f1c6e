import type * as z from 'zod';
import type * as bodies from './bodies.ts';

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
  /** Changes the task fold. */
  | 'tasks'
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
  /** The body has ids of agents. */
  | 'agents'
  /** The schema of the body has defaults for fields that older events lack. */
  | 'defaults'
  /** A terminal that waits for an answer shows the event as one line. */
  | 'announced';

/** How much an event matters to people who read the log. */
export type Level = 'talk' | 'work' | 'noise' | 'problem';

type BodyName = Extract<keyof typeof bodies, `${string}Body`>;

/** Properties of a kind. Pages read this table and must not load zod, so `body` is only the name of the schema. */
type Kind = {
  [N in BodyName]: {
    body: N;
    aspects: readonly Aspect[];
    /**
     * The effect of imported events. The content of a file is untrusted: importing it vouches for what was said, not for what
     * it would cause.
     *   `as is`    The event records what was said and done. Prompts and the page show it like any other.
     *   `history`  The event is shown and has no authority: nothing waits, runs or is permitted because of it.
     */
    imported: 'as is' | 'history';
    level: Level | ((body: z.infer<(typeof bodies)[N]>) => Level);
  };
}[BodyName];

/**
 * Every kind of event. An incomplete entry does not compile, nor does a new kind until every table and every switch over one
 * of its aspects handles it.
 */
export const KINDS = {
  message: {
    body: 'MessageBody',
    aspects: ['words', 'prompt', 'own', 'members', 'run', 'turn'],
    imported: 'as is',
    level: 'talk',
  },
  notice: { body: 'NoticeBody', aspects: [], imported: 'as is', level: 'talk' },
  step: {
    body: 'StepBody',
    aspects: ['words', 'prompt', 'own', 'turn', 'counts'],
    imported: 'as is',
    level: 'work',
  },
  'tool.result': {
    body: 'ToolResultBody',
    aspects: ['words', 'prompt', 'own', 'run', 'turn'],
    imported: 'as is',
    level: (body) => (body.outcome === 'failed' || body.outcome === 'lost' ? 'problem' : 'work'),
  },
  handoff: {
    body: 'HandoffBody',
    aspects: ['words', 'prompt', 'own', 'run', 'turn', 'defaults'],
    imported: 'as is',
    level: 'talk',
  },
  // An imported task has no owner here: its timers, its thread and the waiting agent are elsewhere.
  'delegation.opened': {
    body: 'DelegationOpenedBody',
    aspects: ['words', 'prompt', 'taskOpening', 'tasks', 'ids', 'agents', 'announced'],
    imported: 'history',
    level: 'talk',
  },
  'delegation.ended': {
    body: 'DelegationEndedBody',
    aspects: ['words', 'prompt', 'taskEnd', 'tasks'],
    imported: 'history',
    level: (body) => (body.outcome === 'failed' ? 'problem' : 'talk'),
  },
  question: {
    body: 'QuestionBody',
    aspects: ['words', 'taskOpening', 'tasks', 'announced', 'defaults'],
    imported: 'history',
    level: 'talk',
  },
  'question.answered': {
    body: 'QuestionAnsweredBody',
    aspects: ['words', 'prompt', 'taskEnd', 'tasks'],
    imported: 'history',
    level: 'talk',
  },
  'approval.requested': {
    body: 'ApprovalRequestedBody',
    aspects: ['words', 'taskOpening', 'tasks', 'announced', 'defaults'],
    imported: 'history',
    level: 'talk',
  },
  'approval.decided': {
    body: 'ApprovalDecidedBody',
    aspects: ['words', 'prompt', 'taskEnd', 'tasks', 'defaults'],
    imported: 'history',
    level: 'talk',
  },
  // Membership affects this conversation only, and people can change it at any time.
  'membership.changed': {
    body: 'MembershipChangedBody',
    aspects: ['words', 'members', 'agents', 'upkeep'],
    imported: 'as is',
    level: (body) => (body.change === 'joined' ? 'noise' : 'work'),
  },
  // These would direct agents in every later turn, with the authority of the people here.
  'mode.changed': {
    body: 'ModeChangedBody',
    aspects: ['words', 'conversation', 'upkeep'],
    imported: 'history',
    level: 'talk',
  },
  'phase.changed': {
    body: 'PhaseChangedBody',
    aspects: ['words', 'prompt', 'conversation', 'defaults'],
    imported: 'history',
    level: 'talk',
  },
  'run.directive': {
    body: 'RunDirectiveBody',
    aspects: ['words', 'run', 'agents', 'announced', 'defaults'],
    imported: 'history',
    level: (body) => (body.status === 'failed' ? 'problem' : 'talk'),
  },
  'guard.stopped': { body: 'GuardStoppedBody', aspects: ['announced'], imported: 'as is', level: 'problem' },
  // The runtime would remind an agent of an imported list in its own voice.
  todos: { body: 'TodosBody', aspects: ['tasks', 'defaults'], imported: 'history', level: 'work' },
  injection: {
    body: 'InjectionBody',
    aspects: ['words', 'prompt', 'defaults'],
    imported: 'as is',
    level: 'work',
  },
  error: { body: 'ErrorBody', aspects: ['turn'], imported: 'as is', level: 'problem' },
  // These change the view of one agent. The importer bounds their reach (`import/admit-draft.ts`).
  compaction: {
    body: 'CompactionBody',
    aspects: ['compaction', 'upkeep', 'counts', 'agents'],
    imported: 'as is',
    level: 'work',
  },
  'compaction.progress': {
    body: 'CompactionProgressBody',
    aspects: ['compaction', 'upkeep', 'agents'],
    imported: 'as is',
    level: (body) => (body.phase === 'failed' ? 'problem' : 'work'),
  },
  prune: { body: 'PruneBody', aspects: ['upkeep', 'ids', 'defaults'], imported: 'as is', level: 'noise' },
  baseline: {
    body: 'BaselineBody',
    aspects: ['compaction', 'upkeep', 'counts', 'ids'],
    imported: 'as is',
    level: 'noise',
  },
  // Notes for people. The session in use is in the actor's record, which no file can change.
  'session.changed': {
    body: 'SessionChangedBody',
    aspects: [],
    imported: 'as is',
    level: ({ change }) =>
      change === 'lost' || change === 'refused' ? 'problem' : change === 'adopted' ? 'work' : 'noise',
  },
  'turn.started': {
    body: 'TurnStartedBody',
    aspects: ['tasks', 'turn', 'counts'],
    imported: 'as is',
    level: 'noise',
  },
  'turn.steered': { body: 'TurnSteeredBody', aspects: ['turn', 'counts'], imported: 'as is', level: 'work' },
  'turn.done': {
    body: 'TurnDoneBody',
    aspects: ['tasks', 'turn', 'turnEnd', 'counts'],
    imported: 'as is',
    level: 'work',
  },
  'turn.failed': {
    body: 'TurnFailedBody',
    aspects: ['words', 'prompt', 'own', 'tasks', 'turn', 'turnEnd', 'counts'],
    imported: 'as is',
    level: 'problem',
  },
  'turn.aborted': {
    body: 'TurnAbortedBody',
    aspects: ['words', 'prompt', 'own', 'tasks', 'turn', 'turnEnd', 'counts'],
    imported: 'as is',
    level: 'work',
  },
  command: {
    body: 'CommandBody',
    aspects: ['words', 'prompt', 'tasks', 'turn', 'conversation', 'upkeep', 'counts', 'ids', 'agents'],
    imported: 'as is',
    level: 'talk',
  },
} as const satisfies Record<string, Kind>;

type Kinds = typeof KINDS;
/** What an event records. */
export type EventKind = keyof Kinds;
export const EVENT_KINDS = Object.keys(KINDS) as EventKind[];

export type BodySchema<K extends EventKind> = (typeof bodies)[Kinds[K]['body']];

/** The kinds of events with an aspect. */
export type KindAbout<A extends Aspect> = {
  [K in EventKind]: A extends Kinds[K]['aspects'][number] ? K : never;
}[EventKind];
