import type { TreeNode } from '../../../src/library/projection/tree.ts';
import type { StuckLine } from '../../../src/library/troupe.ts';
import { Go } from '../shared/go.tsx';
import { api } from '../state/api.ts';
import { useFetched } from '../state/fetched.ts';
import { broken, rootOf, stuckWords } from '../state/inbox.ts';
import { route } from '../state/route.ts';
import { nameOf } from '../state/selection.ts';
import { StuckAction } from './stuck-list.tsx';

const MOST = 3;

/** What keeps the open conversation from continuing, even within nested tasks: who waits for whom, down to the cause. */
export function Stalled() {
  const { conversation: id, at } = route.value;
  if (id === null || at !== null) return null;
  const all = broken.value.filter(({ conversation }) => rootOf(conversation) === rootOf(id));
  if (all.length === 0) return null;
  return (
    <section class="stalled" aria-label="Stuck here">
      <ul>
        {all.slice(0, MOST).map((line) => (
          <li key={`${line.conversation} ${line.agent}`}>
            {line.conversation !== id && <Chain line={line} />}
            <Go to={{ conversation: line.conversation, agent: line.agent, turn: line.turn }}>
              {nameOf(line.agent)}
            </Go>{' '}
            <span class="problem">{stuckWords(line)}</span> <StuckAction line={line} />
          </li>
        ))}
      </ul>
    </section>
  );
}

/** Those who wait, outermost first. */
function Chain({ line }: { line: StuckLine }) {
  const root = rootOf(line.conversation);
  const found = useFetched(
    `chain ${line.conversation} ${line.turn}`,
    null,
    () => api.tree(root),
    () => true,
  );
  if (found.state !== 'there') return null;
  return (
    <>
      {chainTo(line.conversation, found.value.nodes).map(({ id, from, conversation }) => (
        <span key={id}>
          <Go to={{ conversation, agent: from }}>{nameOf(from ?? '')}</Go> waits for{' '}
        </span>
      ))}
    </>
  );
}

/** The tasks from the root conversation to a thread. */
function chainTo(thread: string, nodes: readonly TreeNode[]): TreeNode[] {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const tasks: TreeNode[] = [];
  let at = nodes.findLast((node) => node.kind === 'task' && node.thread === thread);
  while (at && !tasks.includes(at)) {
    if (at.kind === 'task') tasks.unshift(at);
    const parent: string | null = at.parent;
    at = parent === null ? undefined : byId.get(parent);
  }
  return tasks;
}
