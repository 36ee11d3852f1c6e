import type { ActorStatus, TaskInfo, ThreadInfo } from '../../library/troupe.ts';
import type { Client } from '../client/client.ts';
import { type ClientOptions, connect } from '../client/connect.ts';
import { clip, paint, print, printable, printJson, screenWidth } from '../render/output.ts';
import { TroupeError } from '../../base/errors.ts';
import { isTaskEnd } from '../../events/index.ts';

interface TasksOptions extends ClientOptions {
  open?: boolean;
  tree?: boolean;
}

/** A task with the tasks that its assignee opened for it. */
type TaskTree = TaskInfo & { tasks?: TaskTree[] };

/** Deepest nesting that is followed, because a troupe's own limit may be higher, and a log may contain anything. */
const MAX_DEPTH = 16;
const LEAST_TEXT = 30;

export async function tasks(conversation: string, options: TasksOptions): Promise<void> {
  const client = await connect(options, { needs: 'data' });
  try {
    const { open = false, tree = false } = options;
    const { tasks: found, thread } = await client.tasks(conversation, { open });
    const all = tree
      ? await withThreads(client, found, { open, seen: new Set([conversation]), depth: 0 })
      : found;
    if (options.json) printJson({ tasks: all, thread });
    else show(conversation, all, thread);
  } finally {
    await client.close();
  }
}

/** Adds the tasks within each thread. A follow-up shares the thread of the first task, so each thread is shown only once. */
async function withThreads(
  client: Client,
  found: readonly TaskInfo[],
  place: { open: boolean; seen: Set<string>; depth: number },
): Promise<TaskTree[]> {
  const { open, seen, depth } = place;
  const trees: TaskTree[] = [];
  for (const task of found) {
    const { thread } = task;
    if (thread === undefined || seen.has(thread) || depth >= MAX_DEPTH) {
      trees.push(task);
      continue;
    }
    seen.add(thread);
    // The thread's first event may not be stored yet.
    const below = (await client.head(thread)) === 0 ? [] : (await client.tasks(thread, { open })).tasks;
    trees.push({ ...task, tasks: await withThreads(client, below, { open, seen, depth: depth + 1 }) });
  }
  return trees;
}

function show(conversation: string, trees: readonly TaskTree[], thread: ThreadInfo | null): void {
  if (thread) {
    const { task, delegator, assignee, home, isOpen } = thread;
    const of = `@${delegator} in ${home} gave ${task} to @${assignee}${isOpen ? '' : ', which has ended'}`;
    print(paint('dim', `${conversation} is the thread of a task: ${of}`));
  }
  if (trees.length === 0) return print(paint('dim', 'no tasks'));
  for (const line of linesOf(trees, '')) print(line);
}

function linesOf(trees: readonly TaskTree[], indent: string): string[] {
  return trees.flatMap((tree) => [lineOf(tree, indent), ...linesOf(tree.tasks ?? [], `${indent}  `)]);
}

const STATUS_STYLE = {
  open: 'cyan',
  done: 'green',
  answered: 'green',
  approved: 'green',
  failed: 'red',
  denied: 'red',
  expired: 'yellow',
  cancelled: 'yellow',
} as const;

function lineOf(task: TaskInfo, indent: string): string {
  const status = task.end?.outcome ?? 'open';
  const until = task.end ? '' : openUntil(task);
  const width = screenWidth() - indent.length - task.id.length - status.length - until.length - 4;
  const what = clip(taskText(task), Math.max(LEAST_TEXT, width));
  return `${indent}${task.id}  ${paint(STATUS_STYLE[status], status)}  ${what}${paint('dim', until)}`;
}

/** Who may decide or answer, and until when. */
function openUntil({ by = [], deadline }: TaskInfo): string {
  const people = by.length === 0 ? [] : [`by ${printable(by.join(', '))}`];
  const parts = deadline === null ? people : [...people, `until ${timeText(deadline)}`];
  return parts.length === 0 ? '' : ` (${parts.join(', ')})`;
}

function taskText(task: TaskInfo): string {
  const { kind, owner, assignee, text = '', attachments = [], tool = '', args = '', choices } = task;
  switch (kind) {
    case 'delegation': {
      const files = attachments.length === 0 ? '' : ` with ${printable(attachments.join(', '))}`;
      return `@${owner} → @${assignee}${files}: ${text}`;
    }
    case 'question':
      return `@${owner} asks: ${text}${choices ? ` [${choices.join(' / ')}]` : ''}`;
    case 'approval':
      return `@${owner} asks to call ${printable(tool)} ${args}`;
  }
}

function timeText(at: number): string {
  return new Date(at).toISOString().slice(0, 16).replace('T', ' ');
}

/** A task that no agent works on: it waits for people, or for an agent that takes no turns. */
export interface Wait {
  /** Conversation of the task. */
  conversation: string;
  task: TaskInfo;
}

interface Waits {
  /** True if an agent works on an open task. */
  atWork: boolean;
  waits: Wait[];
}

/** Finds what the agents of a conversation wait for now: the innermost open tasks. */
export async function openWaits(client: Client, conversation: string): Promise<Waits> {
  const seen = new Set<string>();
  return waitsIn(conversation, 0);

  async function waitsIn(at: string, depth: number): Promise<Waits> {
    seen.add(at);
    const { tasks } = await tasksOf(client, at);
    const found: Waits = { atWork: false, waits: [] };
    for (const task of tasks) {
      const { thread } = task;
      const isBelow = thread !== undefined && !seen.has(thread) && depth < MAX_DEPTH;
      const below = isBelow ? await waitsIn(thread, depth + 1) : { atWork: false, waits: [] };
      const atWork = below.atWork || (isBelow && (await isAtWork(client, thread, task.assignee)));
      found.atWork ||= atWork;
      if (below.waits.length > 0) found.waits.push(...below.waits);
      else if (!atWork) found.waits.push({ conversation: at, task });
    }
    return found;
  }
}

async function tasksOf(client: Client, conversation: string): Promise<{ tasks: TaskInfo[] }> {
  try {
    return await client.tasks(conversation, { open: true });
  } catch (error) {
    // The thread's first event may not be stored yet.
    if (error instanceof TroupeError && error.code === 'conversation_unknown') return { tasks: [] };
    throw error;
  }
}

/** Whether an agent works in the thread. An agent without a record has a pending wake for its first turn. */
async function isAtWork(client: Client, thread: string, agent: string | undefined): Promise<boolean> {
  const actors = await client.actors(thread).catch((error: unknown) => {
    if (error instanceof TroupeError && error.code === 'conversation_unknown') return [];
    throw error;
  });
  const actor = actors.find((each) => each.agent === agent);
  if (!actor) return true;
  if (actor.status === 'paused' || actor.status === 'failed' || actor.status === 'retired') return false;
  return actor.turn !== null || (await isAddressed(client, thread, actor));
}

/** Whether an unread event addresses the agent. Ends of tasks do not count, because the agent may wait for further tasks. */
async function isAddressed(
  client: Client,
  conversation: string,
  { agent, lastProcessedIndex }: Pick<ActorStatus, 'agent' | 'lastProcessedIndex'>,
): Promise<boolean> {
  const head = await client.head(conversation);
  if (lastProcessedIndex >= head) return false;
  const stop = new AbortController();
  try {
    for await (const frame of client.follow(conversation, lastProcessedIndex, stop.signal)) {
      if (frame.type !== 'event') continue;
      if (frame.event.to.includes(agent) && !isTaskEnd(frame.event)) return true;
      if (frame.event.seq >= head) return false;
    }
    return false;
  } finally {
    stop.abort();
  }
}

const MOST_TEXT = 200;

/** Describes a wait and the command that ends it. */
export function waitText({ conversation, task }: Wait): string {
  const { id, kind, owner, assignee, text = '', tool = '', args = '', choices, by = [] } = task;
  const only = by.length > 0 ? ` (of ${printable(by.join(', '))})` : '';
  switch (kind) {
    case 'question': {
      const offered = choices ? ` [${printable(choices.join(' / '))}]` : '';
      return `@${owner} asks${only}: ${clip(text, MOST_TEXT)}${offered}; answer with: troupe answer ${conversation} ${id} TEXT`;
    }
    case 'approval':
      return `@${owner} asks to call${only} ${clip(`${tool} ${args}`, MOST_TEXT)}; decide with: troupe approve ${conversation} ${id}, or: troupe deny ${conversation} ${id}`;
    case 'delegation':
      return `@${owner} waits for @${assignee}: ${clip(text, MOST_TEXT)}; see: troupe tasks ${conversation} --tree, or cancel it with: troupe cancel ${conversation} ${id}`;
  }
}
