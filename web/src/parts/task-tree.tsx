import { useEffect } from 'preact/hooks';
import type { Tree, TreeNode } from '../../../src/projection/tree.ts';
import { duration, plural, short } from '../shared/format.ts';
import { Go } from '../shared/go.tsx';
import { api } from '../state/api.ts';
import { ANY, refetch, useFetched } from '../state/fetched.ts';
import { followStream, settled } from '../state/follow-stream.ts';
import { conversation } from '../state/route.ts';
import { Loaded } from './detail/loaded.tsx';
import '../style/task-tree.css';

/** Threads at work have many events; the whole tree is read again for all of them in this time. */
const NEWS_MS = 1_000;

/** Deeper ones are shown at this depth. */
const MAX_DEPTH = 12;

/** Who gave whom which task, over all threads: each turn and task below the one that it came from. */
export function TaskTree() {
  const id = conversation.value;
  const key = id === null ? null : `tree ${id}`;
  const found = useFetched(key, ANY, () => api.tree(id ?? ''));
  const isLive = found.state === 'there' && found.value.nodes.some(({ state }) => state === 'running');
  useEffect(() => {
    if (id === null || key === null || !isLive) return;
    const news = settled(NEWS_MS, () => refetch(key));
    const leave = followStream({ threadsOf: id }, news.soon);
    return () => {
      leave();
      news.stop();
    };
  }, [id, key, isLive]);
  return (
    <div class="tree">
      <Loaded of={found}>{(tree) => <Whole tree={tree} />}</Loaded>
    </div>
  );
}

function Whole({ tree: { nodes, left } }: { tree: Tree }) {
  const known = new Set(nodes.map(({ id }) => id));
  const children = Map.groupBy(
    nodes.toSorted((a, b) => a.at - b.at || a.seq - b.seq),
    ({ parent }) => (parent !== null && known.has(parent) ? parent : ''),
  );
  const missing = [
    left.threads > 0 && plural(left.threads, 'thread'),
    left.turns > 0 && plural(left.turns, 'older turn'),
    left.tasks > 0 && plural(left.tasks, 'older task'),
  ].filter((each) => each !== false);
  if (nodes.length === 0) return <p class="detail-note">No agent has taken a turn.</p>;
  return (
    <>
      <Branch parent="" of={children} depth={0} />
      {missing.length > 0 && <p class="detail-note">{missing.join(' and ')} are not shown.</p>}
    </>
  );
}

interface BranchProps {
  parent: string;
  of: ReadonlyMap<string, readonly TreeNode[]>;
  depth: number;
}

function Branch({ parent, of, depth }: BranchProps) {
  const nodes = of.get(parent);
  if (!nodes) return null;
  return (
    <ul
      class={depth === 0 || depth > MAX_DEPTH ? undefined : 'tree-branch'}
      aria-label={depth === 0 ? 'Tasks' : undefined}
    >
      {nodes.map((node) => (
        <li key={`${node.conversation} ${node.id}`}>
          <Line node={node} />
          <Branch parent={node.id} of={of} depth={depth + 1} />
        </li>
      ))}
    </ul>
  );
}

const STATES = { running: 'under way', done: 'done', failed: 'failed', aborted: 'stopped' } as const;

function Line({ node }: { node: TreeNode }) {
  const { kind, from, to, text, said, state, at, endedAt, conversation: place, turn, thread } = node;
  const where = thread === null ? { conversation: place, agent: to, turn } : { conversation: thread };
  const spent = node.tokens === null ? 0 : node.tokens.input + node.tokens.output;
  return (
    <p class={`tree-line tree-${kind}`}>
      <Go to={where}>
        {kind === 'task' ? `${from ?? 'Somebody'} gives ${to} a task` : `${to} answers ${from ?? 'somebody'}`}
      </Go>
      <span class={`tree-state tree-${state}`}>
        {STATES[state]}
        {endedAt !== null && ` after ${duration(endedAt - at)}`}
        {spent > 0 && `, ${short(spent)} tokens`}
      </span>
      <span class="tree-text" dir="auto">
        {kind === 'turn' && said !== '' ? said : text}
      </span>
    </p>
  );
}
