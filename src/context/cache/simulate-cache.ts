import type { CacheRules } from './rules.ts';

/** A request as a cache sees it. */
export interface CacheRequest {
  /** Milliseconds; ascending from request to request. */
  readonly at: number;
  /** Where it is routed, at vendors that route by key. */
  readonly key: string;
  /** Hash of all that must be the same beside the blocks: model, effort, thinking mode, tool set. */
  readonly variant: string;
  readonly blocks: readonly CacheBlock[];
  /** Indexes of the blocks after which a breakpoint stands, ascending; for explicit caching. */
  readonly breakpoints: readonly number[];
  /** Tokens of the answer. */
  readonly output: number;
}

export interface CacheBlock {
  readonly hash: string;
  readonly tokens: number;
}

export interface CacheOutcome {
  /** `read` + `written` + `fresh`. */
  readonly input: number;
  readonly read: number;
  /** Paid at the price of writing; 0 at vendors that write for nothing. */
  readonly written: number;
  readonly fresh: number;
  /** In fresh input tokens, output included. */
  readonly cost: number;
  /** The first block that differs from the longest prefix still alive; null where nothing alive goes on differently. */
  readonly brokeAt: number | null;
}

export interface CacheReport {
  readonly requests: readonly CacheOutcome[];
  readonly total: Omit<CacheOutcome, 'brokeAt'> & { readonly output: number; readonly hitRate: number };
}

/** What a vendor's cache makes of a sequence of requests. Each is taken to be answered before the next is sent. */
export function simulateCache(requests: readonly CacheRequest[], rules: CacheRules): CacheReport {
  const roots = new Map<string, PrefixNode>();
  const outcomes = requests.map((request) => {
    const key = rules.routedByKey ? request.key : '';
    const root = roots.get(key) ?? prefixNode();
    roots.set(key, root);
    return send(root, request, rules);
  });
  const sum = (part: (outcome: CacheOutcome) => number) =>
    outcomes.reduce((total, one) => total + part(one), 0);
  const input = sum((one) => one.input);
  const read = sum((one) => one.read);
  return {
    requests: outcomes,
    total: {
      input,
      read,
      written: sum((one) => one.written),
      fresh: sum((one) => one.fresh),
      output: requests.reduce((total, { output }) => total + output, 0),
      cost: sum((one) => one.cost),
      hitRate: input === 0 ? 0 : read / input,
    },
  };
}

/** A request in the tree of all that were sent. */
interface Path {
  readonly nodes: readonly PrefixNode[];
  /** `sums[n]` counts the tokens of the first n blocks. */
  readonly sums: readonly number[];
  /** How many leading blocks were sent before and are still alive. */
  readonly shared: number;
  readonly brokeAt: number | null;
}

function send(root: PrefixNode, request: CacheRequest, rules: CacheRules): CacheOutcome {
  const alive = request.at - rules.ttlMs;
  const path = walk(root, request, alive);
  const input = path.sums.at(-1) ?? 0;
  const { read, written } = readAndWrite(path, request, rules, alive);
  const fresh = input - read - written;
  const { price } = rules;
  const cost = read * price.read + written * price.write + fresh + request.output * price.output;
  return { input, read, written, fresh, cost, brokeAt: path.brokeAt };
}

function walk(root: PrefixNode, { at, variant, blocks, breakpoints }: CacheRequest, alive: number): Path {
  const top = root.children.get(variant) ?? prefixNode();
  root.children.set(variant, top);
  const stops = [...breakpoints.map((index) => index + 1), blocks.length];
  const nodes = descend(top, blocks, stops);
  const way = [root, top, ...nodes];
  const dead = way.findIndex(({ sentAt }, index) => index > 0 && sentAt <= alive);
  const last = way[dead === -1 ? way.length - 1 : dead - 1] ?? root;
  const brokeAt = dead !== -1 && wentOn(last, alive) ? last.to : null;
  for (const node of way) node.sentAt = at;
  const sums = [0];
  let sum = 0;
  for (const { tokens } of blocks) sums.push((sum += tokens));
  return { nodes, sums, shared: last.to, brokeAt };
}

interface Hit {
  read: number;
  written: number;
}

function readAndWrite(path: Path, request: CacheRequest, rules: CacheRules, alive: number): Hit {
  switch (rules.match.kind) {
    case 'breakpoints':
      return atBreakpoints(path, request, rules, rules.match, alive);
    case 'longest-prefix':
      return { read: readable(path.sums[path.shared] ?? 0, rules), written: 0 };
    case 'whole-requests':
      return { read: readable(longestUnit(path, request, alive), rules), written: 0 };
  }
}

function readable(tokens: number, { minimumTokens, stepTokens }: CacheRules): number {
  return tokens < minimumTokens ? 0 : tokens - (tokens % stepTokens);
}

function atBreakpoints(
  { nodes, sums }: Path,
  { at, breakpoints }: CacheRequest,
  { minimumTokens }: CacheRules,
  { most, lookbackBlocks }: { most: number; lookbackBlocks: number },
  alive: number,
): Hit {
  const size = (count: number) => sums[count] ?? 0;
  const ends = breakpoints.map((index) => index + 1).slice(0, most);
  const written = ends.filter((end) => size(end) >= minimumTokens);
  const found = written.map((end) =>
    nodes.findLast(({ to, cachedAt }) => to <= end && to >= end - lookbackBlocks && cachedAt > alive),
  );
  const best = found.findLast((node) => node !== undefined);
  if (best) best.cachedAt = at;
  for (const node of nodes) if (written.includes(node.to)) node.cachedAt = at;
  const read = size(best?.to ?? 0);
  return { read, written: Math.max(0, size(written.at(-1) ?? 0) - read) };
}

/** Tokens of the longest whole request, with or without its answer, that this one begins with. */
function longestUnit({ nodes, sums }: Path, { at, output }: CacheRequest, alive: number): number {
  const unit = nodes.findLast(({ cachedAt }) => cachedAt > alive);
  const input = sums[unit?.to ?? 0] ?? 0;
  // What follows a request is its answer if it is of that size to the token; else only the input counts.
  const whole = input + (unit?.answerTokens ?? 0);
  if (unit) unit.cachedAt = at;
  const end = nodes.at(-1);
  if (end) {
    end.cachedAt = at;
    end.answerTokens = output;
  }
  return sums.includes(whole) ? whole : input;
}

/**
 * Every prefix that was ever sent, as a compressed tree of blocks: requests that begin alike share a path, and a node
 * stands only where they part or where one of them ended or had a breakpoint. So a request costs one comparison for
 * each block that it shares and nothing for the rest.
 */
interface PrefixNode {
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

function prefixNode(blocks: Blocks = [], from = 0, to = 0): PrefixNode {
  return { blocks, from, to, children: new Map(), sentAt: -Infinity, cachedAt: -Infinity, answerTokens: 0 };
}

/** The nodes on the way of a request, made where they are missing; one at each of `stops`, which ascend to its end. */
function descend(root: PrefixNode, blocks: Blocks, stops: readonly number[]): PrefixNode[] {
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
function wentOn({ children }: PrefixNode, since: number): boolean {
  return [...children.values()].some(({ sentAt }) => sentAt > since);
}
