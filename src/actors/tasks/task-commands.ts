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
  type ActorRecord,
  type CommandOf,
  MAX_TOLD_ARGS,
  type AgentId,
  type ApprovalRequestedBody,
  isExactInteger,
  parseExact,
  type Command,
  type TaskCommand,
} from '../../events/index.ts';
import type { Task } from '../../machines/task-fold.ts';
import type { ConversationKey } from '../../store/store.ts';
import { isTrusted, type Trust, type EngineDeps, requirePerson } from '../actor/engine-deps.ts';
import { readOwn } from '../log/conversation-log.ts';
import { type ReadTasks, readTasks, cancellationOf, sendOutgoing, endId } from '../log/tasks.ts';
import { capped, hashText } from '../../context/index.ts';
import { appendFirst } from '../conversations/messages.ts';
import { recordCancellation, stopBelow } from './task-ends.ts';
import { checkInTime } from '../../tools/run-tool.ts';
import { firstProblems } from '../../tools/schema.ts';
import type { Tool } from '../../tools/tool.ts';

type PersonDeps = Pick<EngineDeps, 'log' | 'store' | 'clock' | 'checkpoints'> & {
  /** Trusted people. Default: everybody. */
  trust?: Trust;
  /** Agents, whose tools check changed arguments. Default: arguments are checked only by the call. */
  agents?: EngineDeps['agents'];
};
type TaskOf<K extends Task['kind']> = Extract<Task, { kind: K }>;

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
async function taskForPerson<K extends Task['kind']>(
  deps: PersonDeps,
  kinds: readonly K[],
  attempt: Attempt,
): Promise<{ task: TaskOf<K>; log: ConversationKey; isArchived: boolean }> {
  const here = await readTasks(deps.store, attempt.log, deps.checkpoints);
  // A question within a task is in its thread, but people may send the answer to the root conversation.
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
  const why = whyNot(task, attempt.by, deps.trust ?? null);
  if (why !== null) throw await refusedInLog(deps, { ...attempt, task: task.id }, why);
  return { task, log, isArchived: tasks.fold.directions.archived };
}

/** Why this author may not end the task; null if only the list of the asked people decides. */
function whyNot({ imported }: Task, by: Author, trust: Trust): string | null {
  if (by.kind !== 'user') return 'only people can';
  if (!isTrusted(trust, by)) return 'not one of trust.people';
  return imported ? 'a file brought it, and nobody waits for it here' : null;
}

/** Why this author may not answer or decide the task; null if it may. An empty list of people admits everybody. */
function whyNotAsked(
  { body: { by: asked } }: TaskOf<'question' | 'approval'>,
  { id }: Author,
): string | null {
  return asked.length === 0 || asked.includes(id) ? null : `only ${asked.join(', ')} may`;
}

/** Whether this author may answer the question or decide the approval at this moment, ms since the epoch. */
export function isDecidable(
  task: TaskOf<'question' | 'approval'>,
  by: Author,
  { trust, isArchived, now }: { trust: Trust; isArchived: boolean; now: number },
): boolean {
  const isOpen = !task.end && !isArchived && (task.body.deadline ?? Infinity) > now;
  return isOpen && whyNot(task, by, trust) === null && whyNotAsked(task, by) === null;
}

/** Maximum threads searched for a task. Deeper tasks must be addressed in their thread. */
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

function threadsOf({ fold }: ReadTasks): ConversationId[] {
  const all = [...fold.tasks.values()];
  return [
    ...new Set(
      all.flatMap((each) => (each.kind === 'delegation' && !each.imported ? [each.body.thread] : [])),
    ),
  ];
}

function tasksNamed({ fold, openedBy }: ReadTasks, name: string): Task[] {
  const wanted = name.trim();
  if (wanted === '') return [];
  const all = [...fold.tasks.values()];
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
  const open = [...tasks.fold.tasks.values()].filter(({ kind, end }) => !end && kinds.includes(kind));
  const known = open.slice(-MOST_CANDIDATES).map(({ id }) => id);
  const nearest = nearestName(attempt.task, known);
  const why = other
    ? `it is a ${NOUN[other.kind]}`
    : `there is no such ${noun}${nearest ? `; did you mean "${nearest}"?` : ''}. Open: ${known.join(', ') || 'none'}`;
  return refusedInLog(deps, attempt, why, 'task_unknown');
}

/** Throws if the person may not end the task or it is closed. A deadline counts even if its timer is late. */
async function requireOpenTo(
  deps: PersonDeps,
  attempt: Attempt,
  { task, isArchived }: { task: TaskOf<'question' | 'approval'>; isArchived: boolean },
): Promise<void> {
  const { deadline } = task.body;
  const why = whyNotAsked(task, attempt.by);
  if (why !== null) throw await refusedInLog(deps, attempt, why);
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
 * Ends a task. If the same person has already ended it with the same content, returns that end. After any other end the command
 * is refused, and the refusal names the end.
 */
async function endByPerson(
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
    // An existing end is appended again too, so that a repeated command wakes the owner if the first wake was lost.
    const [appended] = await log.append(target, [draft]);
    if (appended) return appended.event;
  } catch (error) {
    if (!(error instanceof TroupeError) || error.code !== 'event_conflict') throw error;
  }
  const end = await readOwn(store, target, draft);
  if (!end) throw new TroupeError('internal', `the log did not return ${draft.id}`);
  return end;
}

interface Attempt {
  log: ConversationKey;
  by: Author;
  command: 'answer' | 'decide' | 'cancelTask';
  /** Id of the task, or the given name if no task has it. */
  task: string;
  said: string;
}

const ID_DIGITS = 24;
const MOST_QUOTED = 200;

/**
 * Records a refusal in the log and returns the error, so that every attempt to decide something is in the log. Repeated attempts
 * are recorded once.
 */
async function refusedInLog(
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
    // The attempt was recorded before, with another reason.
    if (!(error instanceof TroupeError) || error.code !== 'event_conflict') throw error;
  }
  return new TroupeError(code, message, { task });
}

const VERBS = { answer: 'answer', decide: 'decide', cancelTask: 'cancel' } as const;

function howEnded(end: Event): string {
  const when = new Date(end.at).toISOString();
  const who = nameOf(end.author);
  if (!isAbout(end, 'taskEnd')) return `it ended at ${when}`;
  switch (end.kind) {
    case 'question.answered':
      if (end.body.outcome === 'answered')
        return `${who} answered ${JSON.stringify(quoted(end.body.content))} at ${when}`;
      return end.body.outcome === 'expired' ? `it expired at ${when}` : `${who} cancelled it at ${when}`;
    case 'approval.decided': {
      const { outcome, note, args } = end.body;
      if (outcome === 'expired') return `it expired at ${when}`;
      const did = { approved: 'approved', denied: 'denied', cancelled: 'cancelled' }[outcome];
      const how = args === undefined ? '' : ' with changed arguments';
      return `${who} ${did} it${how} at ${when}${note === '' ? '' : ` (${quoted(note)})`}`;
    }
    case 'delegation.ended':
      return `it ended as ${end.body.outcome} at ${when}, by ${who}`;
  }
}

function nameOf({ kind, id, name }: Author): string {
  return kind === 'agent' ? `@${id}` : name === id ? quoted(name) : `${quoted(name)} (${quoted(id)})`;
}

function quoted(text: string): string {
  return text.length > MOST_QUOTED ? `${text.slice(0, MOST_QUOTED).toWellFormed()}…` : text;
}

/**
 * Cancels a task for a person. The event in its thread stops the assignee, whose refused turn cancels the tasks that it
 * delegated itself.
 */
export async function cancelTaskBy(
  deps: CancelDeps,
  log: ConversationKey,
  { task: named, reason }: Pick<CommandOf<'cancelTask'>, 'task' | 'reason'>,
  by: Author,
): Promise<Event> {
  const why = reason?.trim() || `${by.name} called it off`;
  if (named.trim() === ALL_TASKS) return cancelAll(deps, log, why, by);
  const attempt = { log, by, command: 'cancelTask', task: named, said: why } as const;
  const found = await taskForPerson(deps, ['delegation', 'question', 'approval'], attempt);
  const { task } = found;
  const [first, ...rest] = cancellationOf(found.log, task, by, why);
  if (!first) throw new TroupeError('internal', `nothing ends ${task.id}`);
  const { draft } = first;
  const end = await endByPerson(deps, { ...attempt, log: found.log, task: task.id }, draft, (event) =>
    isSame(event, draft),
  );
  await sendOutgoing(deps, log.tenant, rest);
  return end;
}

function isSame(event: Pick<Event, 'kind' | 'body'>, draft: Pick<Event, 'kind' | 'body'>): boolean {
  return event.kind === draft.kind && JSON.stringify(event.body) === JSON.stringify(draft.body);
}

type CancelDeps = PersonDeps &
  Pick<EngineDeps, 'metrics' | 'registry' | 'broadcast' | 'router' | 'onWarning'>;

const ALL_TASKS = 'all';

/**
 * Ends all work in a conversation and its threads, until a person speaks again. Safe to repeat. The order ensures that each
 * step covers work that began before it:
 *  A1  An entry cancels all threads, at any depth.
 *  A2  An event is appended to the log, after which agents of the conversation no longer answer earlier messages.
 *  A3  Running turns are aborted. After that none of them writes or opens anything.
 *  A4  The open tasks are ended, as if a person cancelled each of them.
 */
async function cancelAll(deps: CancelDeps, log: ConversationKey, reason: string, by: Author): Promise<Event> {
  const { store, broadcast } = deps;
  const { tenant, conversation } = log;
  requirePerson(deps.trust ?? null, by, 'cancel tasks');
  const { fold: before } = await readTasks(store, log, deps.checkpoints);
  if (before.thread) {
    const { delegation, home } = before.thread.opened;
    const message = `${conversation} is the thread of ${delegation}: cancel that in ${home}`;
    throw new TroupeError('command_refused', message, { task: delegation, conversation: home });
  }
  await recordCancellation(store, log, before.begun);
  const id = runtimeId('calledoff', before.begun || 'none');
  const event = await appendFirst(deps, log, {
    id,
    author: by,
    to: [],
    kind: 'command',
    body: { command: 'cancelTask' },
  });
  broadcast.publish({ type: 'cancelled', tenant, task: conversation });
  await stopBelow(deps, tenant, conversation);
  await stopTurns(deps, log);
  const { fold } = await readTasks(store, log, deps.checkpoints);
  const open = [...fold.open].flatMap((task) => fold.tasks.get(task) ?? []);
  await sendOutgoing(
    deps,
    tenant,
    open.flatMap((task) => cancellationOf(log, task, by, reason)),
  );
  return event;
}

async function stopTurns(
  { store, registry, broadcast, router, onWarning }: CancelDeps,
  log: ConversationKey,
): Promise<void> {
  const records = await store.listActors(log);
  const working = records.filter(
    (record): record is ActorRecord => 'fence' in record && record.turn !== null,
  );
  for (const { tenant, conversation, agent, turn } of working) {
    const address = { tenant, conversation, agent };
    if (!turn || !(await store.requestAbort(address, turn.id))) continue;
    registry.find(address)?.lease?.abort(turn.id);
    broadcast.publish({ type: 'stop', address, turn: turn.id });
    // Perhaps no process holds the turn, so the agent is woken. The sweeper makes up for a lost wake.
    await router.wake(address).catch((error: unknown) => onWarning(error, 'wake'));
  }
}

const MAX_ARGS = 100_000;

/**
 * The text of arguments that an approver has changed; undefined if they equal those of the request. Throws `event_invalid` if
 * they do not fit the tool. A process without the tool (because it opens no tool servers) does not check them; the call does.
 */
async function editedArgs(
  { agents, clock }: Pick<EngineDeps, 'clock'> & Partial<Pick<EngineDeps, 'agents'>>,
  { owner, body }: { owner: AgentId; body: ApprovalRequestedBody },
  args: Readonly<Record<string, unknown>>,
): Promise<string | undefined> {
  const asked = parsed(body.args);
  const text = JSON.stringify(withDigits(args, asked));
  if (text.length > MAX_ARGS)
    throw invalidArgs(`have ${text.length} characters; at most ${MAX_ARGS} are taken`);
  // Compared without the spaces that a model may write. Arguments that are not JSON equal no others.
  if (asked !== null && text === JSON.stringify(asked)) return undefined;
  const tool = agents?.get(owner)?.tools.get(body.tool);
  const problems = tool ? await problemsOf(tool, args, clock) : [];
  if (problems.length > 0)
    throw invalidArgs(`do not fit the schema of ${body.tool}: ${firstProblems(problems).join('; ')}`);
  return text;
}

async function problemsOf(
  tool: Tool,
  args: Readonly<Record<string, unknown>>,
  clock: EngineDeps['clock'],
): Promise<string[]> {
  try {
    const checked = await checkInTime(tool, args, { clock });
    if (!checked) return [`the check took longer than ${tool.timeoutMs} ms`];
    return 'value' in checked ? [] : checked.problems;
  } catch (thrown) {
    return [thrown instanceof Error ? thrown.message : String(thrown)];
  }
}

function parsed(args: string): unknown {
  try {
    return parseExact(args.trim() || '{}');
  } catch {
    return null; // A model may write arguments that are not JSON.
  }
}

/** Restores integers beyond 2^53 that the approver did not change but the approver's program rounded. */
function withDigits(edited: unknown, asked: unknown): unknown {
  if (isExactInteger(asked)) return edited === Number(asked.rawJSON) ? asked : edited;
  if (Array.isArray(edited))
    return Array.isArray(asked) ? edited.map((each, index) => withDigits(each, asked[index])) : edited;
  if (!isRecord(edited) || !isRecord(asked)) return edited;
  return Object.fromEntries(
    Object.entries(edited).map(([key, value]) => [
      key,
      Object.hasOwn(asked, key) ? withDigits(value, asked[key]) : value,
    ]),
  );
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function invalidArgs(what: string): TroupeError {
  return new TroupeError('event_invalid', `args: the changed arguments ${what}`, { path: 'args' });
}

export function isTaskCommand(command: Command): command is TaskCommand {
  const { command: name } = command;
  return name === 'answer' || name === 'decide' || name === 'cancelTask';
}

/** Executes a command of a person to a task. Returns the event that ends the task. Throws `command_refused`, `task_unknown`. */
export async function executeTaskCommand(
  deps: CancelDeps,
  log: ConversationKey,
  command: TaskCommand,
  by: Author,
): Promise<Event> {
  switch (command.command) {
    case 'answer':
      return answerQuestion(deps, log, command, by);
    case 'decide':
      return decideApproval(deps, log, command, by);
    case 'cancelTask':
      return cancelTaskBy(deps, log, command, by);
  }
}

/** Ends a question with the first answer of an entitled person. Repeating that answer returns its event. */
export async function answerQuestion(
  deps: PersonDeps,
  log: ConversationKey,
  { question, content }: Pick<CommandOf<'answer'>, 'question' | 'content'>,
  by: Author,
): Promise<Event> {
  if (content.trim() === '') throw invalid('an answer needs words');
  const attempt = { log, by, command: 'answer', task: question, said: content } as const;
  const found = await taskForPerson(deps, ['question'], attempt);
  const { task } = found;
  const known = { ...attempt, log: found.log, task: task.id };
  const { choices } = task.body;
  await requireOpenTo(deps, known, found);
  const choice = choices ? chosen(choices, content) : content;
  if (choice === undefined) throw invalid(`choose one of: ${choices?.join(', ')}`);
  return endByPerson(
    deps,
    known,
    {
      id: endId(task.id),
      author: by,
      to: [task.owner],
      // The agent needs the answer to continue.
      whileBusy: 'steer',
      kind: 'question.answered',
      body: { question: task.id, outcome: 'answered', content: choice },
    },
    (end) => end.kind === 'question.answered' && end.body.content === choice,
  );
}

/** Uses a person's reply to a question as its answer. A reply that cannot be an answer stays a message, such as a query. */
export async function answerByReply(deps: PersonDeps, log: ConversationKey, event: Event): Promise<void> {
  if (event.kind !== 'message' || event.author.kind !== 'user' || event.replyTo === undefined) return;
  const asked = await deps.store.readById(log, event.replyTo);
  if (asked?.kind !== 'question') return;
  const answer = { question: asked.body.question, content: event.body.content };
  try {
    await answerQuestion(deps, log, answer, event.author);
  } catch (error) {
    if (!(error instanceof TroupeError) || error.policy !== 'fix_input') throw error;
  }
}

/** The offered choice that matches, ignoring case and surrounding space. */
function chosen(choices: readonly string[], content: string): string | undefined {
  const typed = content.trim().toLowerCase();
  return (
    choices.find((choice) => choice === content) ??
    choices.find((choice) => choice.trim().toLowerCase() === typed)
  );
}

function invalid(message: string): TroupeError {
  return new TroupeError('event_invalid', `content: ${message}`, { path: 'content' });
}

/** Fields of a decision that let others see it, if they see the results of the tool. */
function toldOf({ agents }: PersonDeps, { owner, body }: TaskOf<'approval'>) {
  const told = agents?.get(owner)?.tools.get(body.tool)?.told;
  return told && { told, call: { tool: body.tool, args: capped(body.args, MAX_TOLD_ARGS) } };
}

/**
 * Decides an approval. The first decision of an entitled person counts, and only for the requested call, with the arguments
 * as requested or as the person has changed them.
 */
export async function decideApproval(
  deps: PersonDeps,
  log: ConversationKey,
  { request, approved, note, argsHash, args }: Omit<CommandOf<'decide'>, 'command' | 'conversation'>,
  by: Author,
): Promise<Event> {
  const outcome = approved ? 'approved' : 'denied';
  if (args && !approved) {
    const message = 'args: only an approval can change the arguments; leave args out';
    throw new TroupeError('event_invalid', message, { path: 'args' });
  }
  const said = [outcome, argsHash ?? '', note ?? '', ...(args ? [JSON.stringify(args)] : [])].join(' ');
  const attempt = { log, by, command: 'decide', task: request, said } as const;
  const found = await taskForPerson(deps, ['approval'], attempt);
  const { task } = found;
  const known = { ...attempt, log: found.log, task: task.id };
  await requireOpenTo(deps, known, found);
  if (argsHash !== undefined && argsHash !== task.body.argsHash)
    throw await refusedInLog(deps, known, 'this is an approval for other arguments');
  if (hashText(task.body.args) !== task.body.argsHash)
    throw await refusedInLog(deps, known, 'its arguments are not those that its hash is of');
  const edited = args && (await editedArgs(deps, task, args));
  const changed = edited === undefined ? {} : { args: edited, argsHash: hashText(edited) };
  return endByPerson(
    deps,
    known,
    {
      id: endId(task.id),
      author: by,
      to: [task.owner],
      kind: 'approval.decided',
      body: { request: task.id, outcome, note: note ?? '', ...changed, ...toldOf(deps, task) },
    },
    (end) =>
      end.kind === 'approval.decided' &&
      end.body.outcome === outcome &&
      end.body.args === edited &&
      (note === undefined || end.body.note === note),
  );
}
