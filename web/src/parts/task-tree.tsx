import { useMemo } from 'preact/hooks';
import type { Projection } from '../../../src/library/projection/model.ts';
import type { Tree, TreeNode } from '../../../src/library/projection/tree.ts';
import { duration, plural, short } from '../shared/format.ts';
import { Go } from '../shared/go.tsx';
import { useTree } from '../state/fetched-tree.ts';
import { shown } from '../state/live.ts';
import { isPast } from '../state/past.ts';
import { conversation } from '../state/route.ts';
import { nameOf } from '../state/selection.ts';
import { treeAt } from '../state/tree-at.ts';
import { Loaded } from './detail/loaded.tsx';
import '../style/task-tree.css';

/** Most levels; deeper tasks are shown at this level. */
const MAX_DEPTH = 12;

/** Who gave which task to whom, over all threads, at the moment shown. Each turn and task stands below the one that caused it. */
export function TaskTree() {
  const found = useTree(conversation.value);
  const now = shown.value;
  return (
    <div class="tree">
      <Loaded of={found}>{(tree) => now && <Whole tree={tree} now={now} />}</Loaded>
    </div>
  );
}

function Whole({ tree, now }: { tree: Tree; now: Projection }) {
  const isLive = !isPast.value;
  const nodes = useMemo(() => treeAt(tree, now, { isLive }), [tree, now, isLive]);
  const { left } = tree;
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

const STATES = {
  running: 'under way',
  done: 'done',
  failed: 'failed',
  aborted: 'aborted',
  cancelled: 'cancelled',
} as const;

function Line({ node }: { node: TreeNode }) {
  const { kind, from, to, text, said, state, at, endedAt, conversation: place, turn, thread } = node;
  const where = thread === null ? { conversation: place, agent: to, turn } : { conversation: thread };
  const spent = node.tokens === null ? 0 : node.tokens.input + node.tokens.output;
  return (
    <p class={`tree-line tree-${kind}`}>
      <Go to={where}>
        {kind === 'task'
          ? `${from === null ? 'Somebody' : nameOf(from)} gives ${nameOf(to)} a task`
          : `${nameOf(to)} answers ${from === null ? 'somebody' : nameOf(from)}`}
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
