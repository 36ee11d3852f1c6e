import type { TaskInfo, ThreadInfo } from '../troupe.ts';
import type { Client } from './client.ts';
import { type ClientOptions, connect } from './connect.ts';
import { clip, paint, print, printable, printJson, screenWidth } from './output.ts';

interface TasksOptions extends ClientOptions {
  open?: boolean;
  tree?: boolean;
}

/** A task with those that its assignee has opened for it. */
type TaskTree = TaskInfo & { tasks?: TaskTree[] };

/** Tasks within tasks that are followed; a log may say anything. */
const MOST_DEPTH = 16;
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

/** A follow-up is worked on in the thread of the first task: each thread is shown once. */
async function withThreads(
  client: Client,
  found: readonly TaskInfo[],
  place: { open: boolean; seen: Set<string>; depth: number },
): Promise<TaskTree[]> {
  const { open, seen, depth } = place;
  const trees: TaskTree[] = [];
  for (const task of found) {
    const { thread } = task;
    if (thread === undefined || seen.has(thread) || depth >= MOST_DEPTH) {
      trees.push(task);
      continue;
    }
    seen.add(thread);
    // The thread may be on its way still.
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
  aborted: 'yellow',
  expired: 'yellow',
  withdrawn: 'yellow',
} as const;

function lineOf(task: TaskInfo, indent: string): string {
  const status = task.end?.outcome ?? 'open';
  const until = task.end || task.deadline === null ? '' : ` (until ${timeText(task.deadline)})`;
  const width = screenWidth() - indent.length - task.id.length - status.length - until.length - 4;
  const what = clip(textOf(task), Math.max(LEAST_TEXT, width));
  return `${indent}${task.id}  ${paint(STATUS_STYLE[status], status)}  ${what}${paint('dim', until)}`;
}

function textOf({ kind, owner, assignee, text = '', tool = '', args = '', choices }: TaskInfo): string {
  switch (kind) {
    case 'delegation':
      return `@${owner} → @${assignee}: ${text}`;
    case 'question':
      return `@${owner} asks: ${text}${choices ? ` [${choices.join(' / ')}]` : ''}`;
    case 'approval':
      return `@${owner} asks to call ${printable(tool)} ${args}`;
  }
}

function timeText(at: number): string {
  return new Date(at).toISOString().slice(0, 16).replace('T', ' ');
}
