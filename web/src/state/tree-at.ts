import type { Projection } from '../../../src/library/projection/model.ts';
import { type Tree, type TreeNode, treeOf } from '../../../src/library/projection/tree.ts';

/**
 * The tree at the moment of a projection of its conversation. The conversation's own turns and tasks come from the projection,
 * as far as it keeps them. All others count by their times and causes.
 */
export function treeAt(tree: Tree, shown: Projection, { isLive }: { isLive: boolean }): TreeNode[] {
  const own = treeOf(shown);
  const ownIds = new Set(own.map(({ id }) => id));
  const others = tree.nodes.filter(({ id }) => !ownIds.has(id));
  if (isLive) return [...own, ...others];
  const all = new Map(tree.nodes.map((node) => [node.id, node]));
  const known = new Map(own.map(({ id }) => [id, true]));
  const isThere = ({ id, conversation, seq, at, parent }: TreeNode): boolean => {
    const found = known.get(id);
    if (found !== undefined) return found;
    // Set before the recursion, so that it ends even in a circle, which no log should have.
    known.set(id, false);
    const hasBegun = conversation === shown.conversation ? seq <= shown.seq : at <= shown.at;
    const cause = parent === null ? undefined : all.get(parent);
    const isIn = hasBegun && (!cause || isThere(cause));
    known.set(id, isIn);
    return isIn;
  };
  return [...own, ...others.filter(isThere).map((node) => asOf(node, shown.at))];
}

function asOf(node: TreeNode, now: number): TreeNode {
  const isSo = node.endedAt === null || node.endedAt <= now;
  return isSo ? node : { ...node, state: 'running', endedAt: null, tokens: null, said: '' };
}
