import { type ErrorCode, TroupeError } from '../../base/errors.ts';
import {
  type Author,
  type ConversationId,
  type Event,
  type EventDraft,
  isAbout,
  nearestName,
  runtimeId,
  SYSTEM_AUTHOR,
} from '../../events/index.ts';
import type { Task } from '../../machines/task-book.ts';
import type { ConversationKey } from '../../store/store.ts';
import { isTrusted, type Trust } from '../conversations/trust.ts';
import type { EngineDeps } from '../engine/engine-deps.ts';
import { readOwn } from '../log/own-id.ts';
import { type ReadTasks, readTasks } from './read-tasks.ts';
import { hashText } from '../../context/index.ts';

export type PersonDeps = Pick<EngineDeps, 'log' | 'store' | 'clock' | 'checkpoints'> & {
  /** Default: everybody. */
  trust?: Trust;
  /** Know the tools that changed arguments must fit. Default: they are not checked before the call. */
  agents?: EngineDeps['agents'];
};
export type TaskOf<K extends Task['kind']> = Extract<Task, { kind: K }>;

const NOUN = {
  delegation: 'delegated task',
  question: 'question',
  approval: 'request for approval',
} as const;
const MOST_CANDIDATES = 10;

/**
 * Finds the task that a person names by its id, the id of its opening event, or a unique prefix of either. Throws
 * `task_unknown`, and `command_refused` if the person may not end it.
 */
export async function taskForPerson<K extends Task['kind']>(
  deps: PersonDeps,
  kinds: readonly K[],
  attempt: Attempt,
): Promise<{ task: TaskOf<K>; log: ConversationKey; isArchived: boolean }> {
  const here = await readTasks(deps.store, attempt.log, deps.checkpoints);
  // A question within a task is asked in its thread, but people know the root conversation.
  const below = tasksNamed(here, attempt.task).length === 0 ? await findBelow(deps, here, attempt) : null;
  const tasks = below?.tasks ?? here;
  const log = below?.log ?? attempt.log;
  const found = tasksNamed(tasks, attempt.task);
  const matches = found.filter((task): task is TaskOf<K> => kinds.some((kind) => kind === task.kind));
  const [task, another] = matches;
  if (another) {
    const candidates = matches.slice(0, MOST_CANDIDATES).map(({ id }) => id);
    const message = `"${attempt.task}" is ambiguous (${candidates.join(' or ')}): give more of the id`;
    throw new TroupeError('command_refused', message, { candidates });
  }
  if (!task) throw await unknown(deps, { tasks, found, kinds }, attempt);
  const known = { ...attempt, task: task.id };
  const { by } = attempt;
  if (by.kind !== 'user') throw await refusedInLog(deps, known, 'only people can');
  if (!isTrusted(deps.trust ?? null, by)) throw await refusedInLog(deps, known, 'not one of trust.people');
  if (task.imported) throw await refusedInLog(deps, known, 'a file brought it, and nobody waits for it here');
  return { task, log, isArchived: tasks.book.directions.archived };
}

/** Most threads searched for a task. Deeper tasks are addressed by their thread. */
const MOST_THREADS = 200;

async function findBelow(
  { store, checkpoints }: PersonDeps,
  from: ReadTasks,
  { log: { tenant }, task }: Attempt,
): Promise<{ tasks: ReadTasks; log: ConversationKey } | null> {
  const waiting = threadsOf(from);
  const seen = new Set<ConversationId>(waiting);
  for (const conversation of waiting) {
    const log = { tenant, conversation };
    const tasks = await readTasks(store, log, checkpoints);
    if (tasksNamed(tasks, task).length > 0) return { tasks, log };
    for (const thread of threadsOf(tasks)) {
      if (seen.has(thread) || seen.size >= MOST_THREADS) continue;
      seen.add(thread);
      waiting.push(thread);
    }
  }
  return null;
}

function threadsOf({ book }: ReadTasks): ConversationId[] {
  const all = [...book.tasks.values()];
  return [
    ...new Set(
      all.flatMap((each) => (each.kind === 'delegation' && !each.imported ? [each.body.thread] : [])),
    ),
  ];
}

function tasksNamed({ book, openedBy }: ReadTasks, name: string): Task[] {
  const wanted = name.trim();
  if (wanted === '') return [];
  const all = [...book.tasks.values()];
  const exact = all.find(({ id }) => id === wanted || openedBy.get(id) === wanted);
  if (exact) return [exact];
  return all.filter(({ id }) => id.startsWith(wanted) || openedBy.get(id)?.startsWith(wanted));
}

function unknown(
  deps: PersonDeps,
  { tasks, found, kinds }: { tasks: ReadTasks; found: readonly Task[]; kinds: readonly Task['kind'][] },
  attempt: Attempt,
): Promise<TroupeError> {
  const noun = kinds.length === 1 && kinds[0] ? NOUN[kinds[0]] : 'task';
  const [other] = found;
  const open = [...tasks.book.tasks.values()].filter(({ kind, end }) => !end && kinds.includes(kind));
  const known = open.slice(-MOST_CANDIDATES).map(({ id }) => id);
  const nearest = nearestName(attempt.task, known);
  const why = other
    ? `it is a ${NOUN[other.kind]}`
    : `there is no such ${noun}${nearest ? `; did you mean "${nearest}"?` : ''}. Open: ${known.join(', ') || 'none'}`;
  return refusedInLog(deps, attempt, why, 'task_unknown');
}

/** Throws if the person may not end the task, or it is closed. A deadline counts even if its timer is late. */
export async function requireOpenTo(
  deps: PersonDeps,
  attempt: Attempt,
  { task, isArchived }: { task: TaskOf<'question' | 'approval'>; isArchived: boolean },
): Promise<void> {
  const { by, deadline } = task.body;
  // An empty list admits everybody.
  if (by.length > 0 && !by.includes(attempt.by.id))
    throw await refusedInLog(deps, attempt, `only ${by.join(', ')} may`);
  if (task.end) return;
  if (isArchived) {
    const { conversation } = attempt.log;
    const message = `${conversation} is archived: reopen it first`;
    throw new TroupeError('command_refused', message, { conversation });
  }
  if (deadline !== undefined && deadline <= deps.clock.now())
    throw await refusedInLog(deps, attempt, `its deadline has passed (${new Date(deadline).toISOString()})`);
}

/**
 * Ends a task. If the same person has ended it with the same content, returns that end. Any other end refuses the command
 * and is named in the refusal.
 */
export async function endByPerson(
  deps: PersonDeps,
  attempt: Attempt,
  draft: EventDraft,
  says: (end: Event) => boolean,
): Promise<Event> {
  const end = await firstEnd(deps, attempt.log, draft);
  if (end.author.kind === draft.author.kind && end.author.id === draft.author.id && says(end)) return end;
  throw await refusedInLog(deps, attempt, howEnded(end));
}

async function firstEnd(
  { log, store }: PersonDeps,
  target: ConversationKey,
  draft: EventDraft,
): Promise<Event> {
  try {
    // Appends an existing end again, too: a repeated command then wakes the owner if the first wake was lost.
    const [appended] = await log.append(target, [draft]);
    if (appended) return appended.event;
  } catch (error) {
    if (!(error instanceof TroupeError) || error.code !== 'event_conflict') throw error;
  }
  const end = await readOwn(store, target, draft);
  if (!end) throw new TroupeError('internal', `the log did not return ${draft.id}`);
  return end;
}

/** A command to a task, as refusals record it. */
interface Attempt {
  log: ConversationKey;
  by: Author;
  command: 'answer' | 'decide' | 'cancelTask';
  /** Id of the task, or the given name if there is no such task. */
  task: string;
  /** Content of the command. */
  said: string;
}

const ID_DIGITS = 24;
const MOST_QUOTED = 200;

/**
 * Records a refusal in the log and returns the error, so that no attempt to decide something is lost. Repeated attempts are
 * recorded once.
 */
export async function refusedInLog(
  deps: Pick<EngineDeps, 'log'>,
  { log, by, command, task, said }: Attempt,
  why: string,
  code: ErrorCode = 'command_refused',
): Promise<TroupeError> {
  const message = `${nameOf(by)} could not ${VERBS[command]} ${quoted(task)}: ${why}`;
  const key = hashText(JSON.stringify([command, task, by.kind, by.id, said])).slice(0, ID_DIGITS);
  const id = runtimeId('refused', key);
  try {
    await deps.log.append(log, [
      { id, author: SYSTEM_AUTHOR, to: [], kind: 'error', body: { code, message } },
    ]);
  } catch (error) {
    // Recorded before, with another reason.
    if (!(error instanceof TroupeError) || error.code !== 'event_conflict') throw error;
  }
  return new TroupeError(code, message, { task });
}

const VERBS = { answer: 'answer', decide: 'decide', cancelTask: 'cancel' } as const;

/** Describes who ended a task, how and when. */
function howEnded(end: Event): string {
  const when = new Date(end.at).toISOString();
  const who = nameOf(end.author);
  if (!isAbout(end, 'taskEnd')) return `it ended at ${when}`;
  switch (end.kind) {
    case 'question.answered':
      if (end.body.outcome === 'answered')
        return `${who} answered ${JSON.stringify(quoted(end.body.content))} at ${when}`;
      return end.body.outcome === 'expired' ? `it expired at ${when}` : `${who} withdrew it at ${when}`;
    case 'approval.decided': {
      const { outcome, note, args } = end.body;
      if (outcome === 'expired') return `it expired at ${when}`;
      const did = { approved: 'approved', denied: 'denied', withdrawn: 'withdrew' }[outcome];
      const how = args === undefined ? '' : ' with changed arguments';
      return `${who} ${did} it${how} at ${when}${note === '' ? '' : ` (${quoted(note)})`}`;
    }
    case 'delegation.completed':
    case 'delegation.aborted':
      return `it ended as ${end.body.outcome} at ${when}, by ${who}`;
  }
}

function nameOf({ kind, id, name }: Author): string {
  return kind === 'agent' ? `@${id}` : name === id ? quoted(name) : `${quoted(name)} (${quoted(id)})`;
}

function quoted(text: string): string {
  return text.length > MOST_QUOTED ? `${text.slice(0, MOST_QUOTED).toWellFormed()}…` : text;
}
