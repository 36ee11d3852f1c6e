import {
  type AgentId,
  type Attachment,
  attachmentName,
  agentAuthor,
  type DelegationOpenedBody,
  SYSTEM_AUTHOR,
  type Timer,
  type GuardStoppedBody,
  type Event,
  MAX_ATTACHED_BYTES,
  MAX_MESSAGE_ATTACHMENTS,
  nearestName,
} from '../../events/index.ts';
import { isDeepStrictEqual } from 'node:util';
import type { RequestOf } from '../../tools/tool.ts';
import { resolveAgent } from '../conversations/messages.ts';
import { ownDraft, type TurnRun } from '../attempt/turn-run.ts';
import {
  type CallPlace,
  type AppliedRequest,
  effectsOf,
  refused,
  stopped,
  stoppedForGood,
} from './call-effects.ts';
import { cancellationOf, openedId, opening, taskIdOf, threadOf } from '../log/tasks.ts';
import { toTroupeError } from '../../base/errors.ts';
import { isTaskOpen, openTasks } from '../../machines/task-fold.ts';
import { isThreadCancelled, placesOf } from './task-ends.ts';
import { createLogFolds, type LogFolds, type PageSource } from '../log/read-log.ts';
import { eventsAt, originsOf } from '../log/read-turn.ts';

/**
 * Delegates a task: records it in this log, opens it in a thread, and ends it at its deadline at the latest. The thread is a
 * separate conversation, so the assignee sees only its task, and one agent can work on several tasks at the same time.
 */
export async function delegate(
  run: TurnRun,
  request: RequestOf<'delegate'>,
  at: CallPlace,
): Promise<AppliedRequest> {
  const { turn, live, deps } = run;
  const { agent, conversation } = live.address;
  const found = assigneeOf(run, request.to);
  if ('refusal' in found) return refused(found.refusal);
  const { assignee } = found;
  const given = await attachmentsFor(run, request.attachments);
  if ('refusal' in given) return refused(given.refusal);
  const { attachments } = given;
  const { thread: own } = live.tasks;
  const chain = [...(own?.opened.chain ?? []), agent];
  const stop = guardOf(run, { ...request, assignee, chain, at, attachments });
  if (stop) return stopped(run, at, stop);
  const descent = await descentOf(run);
  if (!descent) return refused(TASK_CANCELLED);
  const { root, within, tree } = descent;
  const delegation = taskIdOf('d', turn.id, at);
  const full = await guardTree(run, delegation, at, descent);
  if (full) return stoppedForGood(run, at, full);
  return open(run, at, request.wait, {
    delegation,
    how: request.how,
    delegator: agent,
    assignee,
    task: request.task,
    ...(attachments.length > 0 && { attachments: [...attachments] }),
    home: conversation,
    thread: threadOf(root, delegation),
    root,
    group: `${turn.id}/${request.join}`,
    join: request.join,
    chain,
    within,
    tree,
    deadline: deadlineOf(run, request.deadlineMs ?? deps.limits.taskMs),
  });
}

/** Writes to the assignee of an earlier task: a message while the task is open, otherwise a new task in the same thread. */
export async function followUp(
  run: TurnRun,
  request: RequestOf<'followUp'>,
  at: CallPlace,
): Promise<AppliedRequest> {
  const { turn, live, deps, runtime } = run;
  const { agent } = live.address;
  const found = findTask(run, request.task);
  if (typeof found === 'string') return refused(found);
  const { end } = found;
  // Only named attachments are sent, because the thread already has those of the task.
  const given = await attachmentsFor(run, request.attachments ?? []);
  if ('refusal' in given) return refused(given.refusal);
  const more = given.attachments.length > 0 && { attachments: [...given.attachments] };
  const { attachments: _, ...body } = found.body;
  if (end === null) {
    const id = openedId(taskIdOf('d', turn.id, at));
    const message = { kind: 'message' as const, body: { content: request.text, ...more } };
    const draft = {
      id,
      author: agentAuthor(runtime.profile),
      to: [body.assignee],
      hop: turn.hop + 1,
      ...message,
    };
    return {
      outcome: 'done',
      text: `told @${body.assignee}${withNames(given.attachments)}; the result of ${body.delegation} comes as before`,
      effects: effectsOf({ posts: [{ conversation: body.thread, draft }], ends: request.wait }),
    };
  }
  const chain = body.chain;
  const asked = { assignee: body.assignee, task: request.text, attachments: [] };
  const stop = guardOf(run, { ...asked, force: true, chain, at });
  if (stop) return stopped(run, at, stop);
  const descent = await descentOf(run);
  if (!descent) return refused(TASK_CANCELLED);
  const delegation = taskIdOf('d', turn.id, at);
  const full = await guardTree(run, delegation, at, descent);
  if (full) return stoppedForGood(run, at, full);
  return open(run, at, request.wait, {
    ...body,
    ...descent,
    delegation,
    how: 'followUp',
    delegator: agent,
    task: request.text,
    ...more,
    group: `${turn.id}/${request.join}`,
    join: request.join,
    deadline: deadlineOf(run, request.deadlineMs ?? deps.limits.taskMs),
  });
}

const TASK_CANCELLED = 'your own task was cancelled: delegate nothing more';

function open(run: TurnRun, at: CallPlace, wait: boolean, body: DelegationOpenedBody): AppliedRequest {
  const { live, turn, runtime } = run;
  const { conversation, agent } = live.address;
  const { delegation, assignee, thread, deadline = 0, attachments = [] } = body;
  const kind = 'delegation.opened' as const;
  const task = opening({ kind: 'delegation', body, id: delegation }, agent);
  const timer: Timer = {
    at: deadline,
    task: delegation,
    posts: cancellationOf({ conversation }, task, SYSTEM_AUTHOR, 'its deadline has passed'),
  };
  const opened = {
    id: openedId(delegation),
    author: agentAuthor(runtime.profile),
    to: [assignee],
    hop: turn.hop + 1,
  };
  return {
    outcome: 'done',
    text: `${delegation} is given to @${assignee}${withNames(attachments)}. ${wait ? 'You are woken with the result.' : 'Its result comes when it is done.'}`,
    effects: effectsOf({
      events: [{ ...ownDraft(run, openingPart(at)), kind, body }],
      posts: [{ conversation: thread, draft: { ...opened, kind, body } }],
      timers: [timer],
      ends: wait,
    }),
  };
}

function withNames(attachments: readonly Attachment[]): string {
  return attachments.length === 0 ? '' : ` with ${attachments.map(attachmentName).join(', ')}`;
}

/** The deadline of a new task, at most that of the open task of which it is a part. If there are several, the latest counts. */
export function deadlineOf({ deps, live }: TurnRun, ms: number): number {
  const own = (live.tasks.thread?.open ?? []).map(({ deadline }) => deadline ?? Number.MAX_SAFE_INTEGER);
  return Math.min(
    deps.clock.now() + Math.ceil(ms),
    own.length > 0 ? Math.max(...own) : Number.MAX_SAFE_INTEGER,
  );
}

function assigneeOf(run: TurnRun, name: string): { assignee: AgentId } | { refusal: string } {
  const { live, deps } = run;
  if (live.tasks.directions.archived)
    return { refusal: 'this conversation is closed: nothing is delegated in it' };
  try {
    const assignee = resolveAgent(deps.agents, name.trim());
    const away = live.tasks.away.get(assignee);
    if (!away) return { assignee };
    return { refusal: `@${assignee} ${away.blocked ? 'is blocked here' : 'has left'}: choose another` };
  } catch (error) {
    return { refusal: toTroupeError(error).message };
  }
}

type Delegated = Extract<ReturnType<TurnRun['live']['tasks']['tasks']['get']>, { kind: 'delegation' }>;

/** Finds a task of this agent by its id or a unique prefix. Returns a refusal if there is none. */
export function findTask({ live }: TurnRun, name: string): Delegated | string {
  const own = [...live.tasks.tasks.values()].filter(
    (task): task is Delegated =>
      task.kind === 'delegation' && task.owner === live.address.agent && !task.imported,
  );
  const wanted = name.trim();
  const matches = wanted === '' ? [] : own.filter(({ id }) => id.startsWith(wanted));
  const [match] = matches;
  if (match && matches.length === 1) return match;
  const known = (matches.length > 1 ? matches : own).slice(-10).map(({ id }) => id);
  if (matches.length > 1) return `"${name}" may be ${known.join(' or ')}: give more of the id`;
  return `you have given no task "${name}". Known: ${known.join(', ') || 'none'}.`;
}

interface AskedDelegation {
  assignee: AgentId;
  task: string;
  attachments: readonly Attachment[];
  force: boolean;
  /** Ids of the chain of delegators, this agent last. */
  chain: readonly AgentId[];
  at: CallPlace;
}

function guardOf(run: TurnRun, asked: AskedDelegation): GuardStoppedBody | null {
  const { live, deps, turn } = run;
  const { limits } = deps;
  const { agent } = live.address;
  const { assignee, chain } = asked;
  const message = 'a message of a person begins a new count';
  if (turn.hop >= limits.maxHops) {
    return {
      guard: 'hops',
      message: `work was passed on ${turn.hop} times since a person spoke (at most ${limits.maxHops}): do it yourself, or say what is missing`,
      goOn: message,
    };
  }
  if (chain.length > limits.maxDepth) {
    return {
      guard: 'depth',
      message: `this is a task within ${chain.length - 1} tasks (at most ${limits.maxDepth}): do it yourself`,
      goOn: 'ask for less at once',
    };
  }
  const above = chain.slice(0, -1);
  const isAgain = assignee === agent ? above.at(-1) === agent : above.includes(assignee);
  if (isAgain && !asked.force) {
    return {
      guard: 'cycle',
      message: `@${assignee} waits for this very work (${[...chain, assignee].map((each) => `@${each}`).join(' -> ')}): do it yourself, or give it to somebody else`,
      goOn: 'nothing has to be done: the agent knows',
    };
  }
  if (isOpenAlready(run, asked)) {
    return {
      guard: 'duplicate',
      message: `@${assignee} has this very task already: wait for its result`,
      goOn: 'nothing has to be done: the first of the two goes on',
    };
  }
  const open = openTasks(live.tasks, agent).length + openedSoFar(run, asked.at);
  if (open < limits.maxOpenTasks) return null;
  return {
    guard: 'fan_out',
    message: `${open} tasks are open (at most ${limits.maxOpenTasks}): wait for their results`,
    goOn: 'wait until some have ended, or cancel some',
  };
}

/** Whether the same task is already open: in the log, by this turn, or by an earlier call of this step. */
function isOpenAlready(run: TurnRun, { assignee, task, attachments, at }: AskedDelegation): boolean {
  const { live, outputs, answer } = run;
  const sameWords = (other: { assignee: string; task: string }) =>
    other.assignee === assignee && normal(other.task) === normal(task);
  const same = (other: DelegationOpenedBody) =>
    sameWords(other) && isDeepStrictEqual(other.attachments ?? [], attachments);
  const open = openTasks(live.tasks, live.address.agent);
  if (open.some((each) => each.kind === 'delegation' && same(each.body))) return true;
  if (outputs.some((output) => output.kind === 'delegation.opened' && same(output.body))) return true;
  const calls = answer?.calls ?? [];
  const own = calls[at.index];
  const isSame = (other: ReturnType<typeof givenBy>) =>
    sameWords(other) && isDeepStrictEqual(other.attachments, givenBy(own?.args ?? '').attachments);
  return calls
    .slice(0, at.index)
    .some(({ name, args }) => name === own?.name && (sameArgs(args, own.args) || isSame(givenBy(args))));
}

function givenBy(args: string): { assignee: string; task: string; attachments?: unknown } {
  try {
    const { to, task, question = task, attachments } = JSON.parse(args) as Record<string, unknown>;
    return { assignee: String(to).trim().replace(/^@/, ''), task: String(question), attachments };
  } catch {
    return { assignee: '', task: '' };
  }
}

function openedSoFar({ outputs }: TurnRun, at: CallPlace): number {
  return outputs.filter(({ kind }) => kind === 'delegation.opened').length + at.index;
}

function normal(text: string): string {
  return text.replace(/\s+/g, ' ').trim().toLowerCase();
}

function sameArgs(a: string, b: string): boolean {
  return normal(a) === normal(b);
}

/** The tasks of which a new task is a part, and the tree in which it counts. */
interface Descent {
  root: TurnRun['live']['address']['conversation'];
  within: ReturnType<typeof placesOf>;
  tree: string;
}

const descents = new WeakMap<TurnRun, { step: number; found: Promise<Descent | null> }>();

/** The descent of new tasks. Cached per step, because the calls of a step run concurrently and have the same descent. */
function descentOf(run: TurnRun): Promise<Descent | null> {
  const known = descents.get(run);
  if (known?.step === run.step) return known.found;
  const found = findDescent(run);
  descents.set(run, { step: run.step, found });
  return found;
}

/** Null if the task of this turn was cancelled and no person has spoken, because new tasks would be useless. */
async function findDescent({ deps, live, turn }: TurnRun): Promise<Descent | null> {
  const { tenant, conversation } = live.address;
  const { thread, begun } = live.tasks;
  if (!thread) return { root: conversation, within: [], tree: begun };
  if (!(await isThreadCancelled(deps.store, tenant, live.tasks))) {
    const within = isTaskOpen(live.tasks) ? placesOf(live.tasks) : [];
    return { root: thread.opened.root, within, tree: thread.opened.tree ?? '' };
  }
  // A person's request begins a new tree.
  return turn.byPerson ? { root: conversation, within: [], tree: begun } : null;
}

/** Takes a place for a new task in its tree. Returns the guard that forbids it; null if it is allowed. */
async function guardTree(
  run: TurnRun,
  id: string,
  at: CallPlace,
  { root, tree }: Descent,
): Promise<GuardStoppedBody | null> {
  const { deps, live } = run;
  const { tenant } = live.address;
  const waiting = (await deps.pending?.of(tenant)) ?? 0;
  const most = deps.pending?.limit ?? Infinity;
  if (waiting >= most) {
    return {
      guard: 'pending',
      message: `too many agents of this tenant wait for their turn (limits.pendingPerTenant ${most}): give nothing to others now; do it yourself, or say that it has to wait`,
      goOn: 'ask again when fewer wait, or raise limits.pendingPerTenant in the agents file',
    };
  }
  const { maxTreeTasks, maxTreeOpen } = deps.limits;
  const isEnded = (task: string) => (live.tasks.tasks.get(task)?.end ?? null) !== null;
  const opening = ownDraft(run, openingPart(at)).id;
  const taken = await deps.trees.take({ tenant, root, tree }, { id, opening, isEnded });
  if (taken.ok) return null;
  if (taken.of === 'made') {
    return {
      guard: 'tree',
      message: `${taken.made} tasks were made of one message (limits.maxTreeTasks ${maxTreeTasks}): do it yourself, or answer with what you have`,
      goOn: `a message of a person in ${root} begins a new count; or raise limits.maxTreeTasks in the agents file, or cancel tasks`,
    };
  }
  return {
    guard: 'tree',
    message: `${taken.open} tasks of one message are open (at most ${maxTreeOpen}): wait for results, do it yourself, or answer with what you have`,
    goOn: `wait until some have ended, or cancel some in ${root}`,
  };
}

function openingPart({ step, index }: CallPlace): string {
  return `opened:${step}.${index}`;
}

type Given = { attachments: readonly Attachment[] } | { refusal: string };

/**
 * The attachments of a task: the named ones, otherwise those of the messages that began the work of the turn, the newest up to the
 * limits of a message. Agents know them by the names that prompts show.
 */
async function attachmentsFor(run: TurnRun, names: readonly string[] | undefined): Promise<Given> {
  if (names === undefined) return { attachments: withinLimits(await begun(run)) };
  if (names.length === 0) return { attachments: [] };
  return named(run, names);
}

async function begun({ deps, live, turn }: TurnRun): Promise<Attachment[]> {
  const seqs = [...turn.inputs, ...(turn.steered ?? []).flatMap(({ inputs }) => inputs)];
  const inputs = await eventsAt(deps, live.address, seqs);
  const origins = await originsOf(deps, inputs, { leavesThread: false });
  return origins.flatMap(attachmentsIn);
}

/** The attachments with these names. If several messages have a name, the newest that the turn has seen counts. */
async function named({ deps, live, turn }: TurnRun, names: readonly string[]): Promise<Given> {
  const upTo = Math.max(turn.upTo, ...(turn.steered ?? []).map(({ upTo: last }) => last));
  const places = await foldsOf(deps.store).of(live.address);
  const newest = (name: string) => places.get(name)?.findLast((seq) => seq <= upTo);
  const found: Attachment[] = [];
  for (const name of new Set(names.map(attachmentKey))) {
    const seq = newest(name);
    if (seq === undefined) {
      const known = [...places.keys()].filter((each) => newest(each) !== undefined);
      return { refusal: unknown(name, known) };
    }
    const [event] = await eventsAt(deps, live.address, [seq]);
    found.push(...(event ? attachmentsIn(event).filter((each) => attachmentName(each) === name) : []));
  }
  const { length } = withinLimits(found);
  if (length === found.length) return { attachments: found };
  const most = `${MAX_MESSAGE_ATTACHMENTS} attachments of ${MAX_ATTACHED_BYTES / 1_024 / 1_024} MB together`;
  return { refusal: `a task takes at most ${most}: name fewer` };
}

const MOST_NAMES = 50;

function unknown(name: string, known: readonly string[]): string {
  if (known.length === 0) return `there is no attachment "${name}": this conversation has none.`;
  const nearest = nearestName(name, known);
  const maybe = nearest ? ` Did you mean "${nearest}"?` : '';
  const more = known.length > MOST_NAMES ? `, and ${known.length - MOST_NAMES} older ones` : '';
  return `there is no attachment "${name}".${maybe} Known: ${known.slice(-MOST_NAMES).toReversed().join(', ')}${more}.`;
}

function attachmentKey(name: string): string {
  return attachmentName({ name: name.trim(), mediaType: '' });
}

/** The attachments that agents see. Those of notices are for people only. */
function attachmentsIn(event: Event): readonly Attachment[] {
  const isHere = event.kind === 'delegation.opened' && event.body.thread === event.conversation;
  return (event.kind === 'message' || isHere) && event.erased === undefined
    ? (event.body.attachments ?? [])
    : [];
}

function withinLimits(attachments: readonly Attachment[]): Attachment[] {
  let room = MAX_ATTACHED_BYTES;
  const kept: Attachment[] = [];
  for (const each of attachments.toReversed()) {
    room -= each.type === 'text' ? Buffer.byteLength(each.text) : each.bytes;
    if (room < 0 || kept.length === MAX_MESSAGE_ATTACHMENTS) break;
    kept.push(each);
  }
  return kept.reverse();
}

/** Seqs of the events with an attachment of a name, by name. The name used last comes last. */
type Places = Map<string, number[]>;

const KEPT = 64;

const folds = new WeakMap<PageSource, LogFolds<Places>>();

/** The folds of names. Created when a name is first needed, because nothing else needs them. */
function foldsOf(store: PageSource): LogFolds<Places> {
  const known =
    folds.get(store) ?? createLogFolds<Places>(store, { begin: () => new Map(), fold: note, kept: KEPT });
  folds.set(store, known);
  return known;
}

function note(places: Places, event: Event): void {
  for (const name of new Set(attachmentsIn(event).map(attachmentName))) {
    const seqs = places.get(name) ?? [];
    places.delete(name);
    places.set(name, [...seqs, event.seq]);
  }
}
