import { MAX_TASKS, type Projection, type TaskView } from '../library/projection/model.ts';
import { type Tree, type TreeNode, treeOf } from '../library/projection/tree.ts';
import { oneLine } from '../library/projection/words.ts';
import type { Troupe } from '../library/troupe.ts';
import type { ProjectionBook } from './access/projection-books.ts';

/** Threads of an answer, and turns and tasks after which no other thread is read. */
const MAX_THREADS = 100;
const MAX_NODES = 2_000;
const AT_ONCE = 8;

/** The turns and tasks that a conversation has started, over all threads: the outer ones first, of each the newest. */
export async function readTree(sources: TreeSources, conversation: string): Promise<Tree> {
  const root = await withTasks(sources, await sources.book.latest(conversation));
  const { seq } = root.projection;
  const tree: Tree = {
    conversation: root.projection.conversation,
    seq,
    nodes: [],
    left: { threads: 0, turns: 0, tasks: 0 },
  };
  add(tree, root, null);
  const seen = new Set<string>([conversation]);
  // Threads that are found while others are read go to the end.
  const waiting = threadsIn(tree.nodes, seen);
  for (let read = 0; waiting.length > 0 && read < MAX_THREADS && tree.nodes.length < MAX_NODES;) {
    const batch = waiting.splice(0, Math.min(AT_ONCE, MAX_THREADS - read));
    read += batch.length;
    const found = await Promise.all(batch.map((thread) => readThread(sources, thread)));
    for (const { read, home } of found) {
      if (read) waiting.push(...threadsIn(add(tree, read, home), seen));
      else tree.left.threads += 1;
    }
  }
  tree.left.threads += waiting.length;
  return tree;
}

interface TreeSources {
  book: ProjectionBook;
  troupe: Pick<Troupe, 'tasks'>;
}

/** A conversation with all of its tasks, or the newest of them. */
interface TreePart {
  projection: Projection;
  /** Delegations that are not in it. */
  left: number;
}

/** A projection keeps `MAX_TASKS` ended tasks. The others are in the log; when they ended is not read. */
async function withTasks({ troupe }: TreeSources, projection: Projection): Promise<TreePart> {
  const { tasks, conversation } = projection;
  if (tasks.filter(({ endedAt }) => endedAt !== null).length < MAX_TASKS) return { projection, left: 0 };
  const known = new Set(tasks.map(({ id }) => id));
  const others = (await troupe.tasks(conversation)).tasks.flatMap((task): TaskView[] => {
    const { id, kind, owner, assignee = null, thread = null, text = '', openedAt, end } = task;
    if (kind !== 'delegation' || known.has(id)) return [];
    const { seq, at } = openedAt;
    const outcome = end?.outcome ?? null;
    const given = { id, kind, owner, assignee, thread, seq, at, text: oneLine(text), outcome };
    return [{ ...given, choices: [], argsHash: null, endedAt: null }];
  });
  const more = others.slice(-MAX_NODES);
  return { projection: { ...projection, tasks: [...more, ...tasks] }, left: others.length - more.length };
}

function add(tree: Tree, { projection, left }: TreePart, home: string | null): TreeNode[] {
  const nodes = treeOf(projection, home);
  tree.nodes.push(...nodes);
  tree.left.turns += droppedOf(projection);
  tree.left.tasks += left;
  return nodes;
}

interface Thread {
  thread: string;
  home: string;
}

/** The threads of these tasks that are not seen yet, the newest first. */
function threadsIn(nodes: readonly TreeNode[], seen: Set<string>): Thread[] {
  const found: Thread[] = [];
  // A follow-up continues in the thread of the first task.
  for (const { id, thread } of nodes.toSorted((a, b) => a.at - b.at)) {
    if (thread === null || seen.has(thread)) continue;
    seen.add(thread);
    found.push({ thread, home: id });
  }
  return found.toReversed();
}

/** Null for a thread that is gone, has no events yet, or is not for the caller. */
async function readThread(sources: TreeSources, { thread, home }: Thread) {
  const projection = await sources.book.latest(thread).catch(() => null);
  return { read: projection && (await withTasks(sources, projection)), home };
}

function droppedOf({ totals, turns }: Projection): number {
  return totals.turns - turns.length;
}
