import type { Projection } from '../projection/model.ts';
import { type Tree, type TreeNode, treeOf } from '../projection/tree.ts';
import type { ProjectionBook } from './access/projection-books.ts';

/** Threads of an answer, and turns and tasks after which no other thread is read. */
const MAX_THREADS = 100;
const MAX_NODES = 2_000;
const AT_ONCE = 8;

/** The turns and tasks that a conversation has started, over all threads: the outer ones first, of each the newest. */
export async function readTree(book: ProjectionBook, conversation: string): Promise<Tree> {
  const root = await book.latest(conversation);
  const tree: Tree = {
    conversation: root.conversation,
    seq: root.seq,
    nodes: treeOf(root),
    left: { threads: 0, turns: droppedOf(root) },
  };
  const seen = new Set<string>([conversation]);
  // Threads that are found while others are read go to the end.
  const waiting = threadsIn(tree.nodes, seen);
  for (let read = 0; waiting.length > 0 && read < MAX_THREADS && tree.nodes.length < MAX_NODES;) {
    const batch = waiting.splice(0, Math.min(AT_ONCE, MAX_THREADS - read));
    read += batch.length;
    const found = await Promise.all(batch.map((thread) => readThread(book, thread)));
    for (const { projection, home } of found) {
      if (projection) waiting.push(...threadsIn(add(tree, projection, home), seen));
      else tree.left.threads += 1;
    }
  }
  tree.left.threads += waiting.length;
  return tree;
}

function add(tree: Tree, projection: Projection, home: string): TreeNode[] {
  const nodes = treeOf(projection, home);
  tree.nodes.push(...nodes);
  tree.left.turns += droppedOf(projection);
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
async function readThread(book: ProjectionBook, { thread, home }: Thread) {
  const projection = await book.latest(thread).catch(() => null);
  return { projection, home };
}

function droppedOf({ totals, turns }: Projection): number {
  return totals.turns - turns.length;
}
