/**
 * Every prefix that was ever sent, as a compressed tree of blocks: requests that begin alike share a path, and a node
 * stands only where they part or where one of them ended or had a breakpoint. So a request costs one comparison for
 * each block that it shares and nothing for the rest.
 */
export interface PrefixNode {
  /** From the parent to here: `blocks[from]` to `blocks[to - 1]`, counted from the beginning of the request. */
  readonly blocks: readonly { readonly hash: string }[];
  from: number;
  readonly to: number;
  /** By the hash of their first block. */
  readonly children: Map<string, PrefixNode>;
  /** When a request last went through here; never: -Infinity. */
  sentAt: number;
  /** When the prefix that ends here was last used as one cached unit; never: -Infinity. */
  cachedAt: number;
  /** Size of the answer to the last request that ended here. */
  answerTokens: number;
}

type Blocks = PrefixNode['blocks'];

export function prefixNode(blocks: Blocks = [], from = 0, to = 0): PrefixNode {
  return { blocks, from, to, children: new Map(), sentAt: -Infinity, cachedAt: -Infinity, answerTokens: 0 };
}

/** The nodes on the way of a request, made where they are missing; one at each of `stops`, which ascend to its end. */
export function descend(root: PrefixNode, blocks: Blocks, stops: readonly number[]): PrefixNode[] {
  const path: PrefixNode[] = [];
  let node = root;
  for (const stop of stops) {
    while (node.to < stop) {
      node = step(node, blocks, stop);
      path.push(node);
    }
  }
  return path;
}

function step(parent: PrefixNode, blocks: Blocks, stop: number): PrefixNode {
  const first = blocks[parent.to]?.hash ?? '';
  const child = parent.children.get(first);
  if (!child) {
    const added = prefixNode(blocks, parent.to, stop);
    parent.children.set(first, added);
    return added;
  }
  const end = Math.min(child.to, stop);
  let same = child.from + 1;
  while (same < end && child.blocks[same]?.hash === blocks[same]?.hash) same += 1;
  return same === child.to ? child : split(parent, child, same);
}

function split(parent: PrefixNode, child: PrefixNode, at: number): PrefixNode {
  const upper = prefixNode(child.blocks, child.from, at);
  upper.sentAt = child.sentAt;
  parent.children.set(child.blocks[child.from]?.hash ?? '', upper);
  upper.children.set(child.blocks[at]?.hash ?? '', child);
  child.from = at;
  return upper;
}

/** Whether any request went on from here after `since`. */
export function wentOn({ children }: PrefixNode, since: number): boolean {
  return [...children.values()].some(({ sentAt }) => sentAt > since);
}
