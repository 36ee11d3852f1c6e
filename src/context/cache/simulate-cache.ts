import type { CacheRules } from './rules.ts';

/** A request as a cache sees it. */
export interface CacheRequest {
  /** Milliseconds, ascending over the requests. */
  readonly at: number;
  /** Routing key, for vendors that route by key. */
  readonly key: string;
  /** Hash of everything else that must match: model, effort, thinking mode, tool set. */
  readonly variant: string;
  readonly blocks: readonly CacheBlock[];
  /** Indexes of the blocks behind which a breakpoint stands, ascending. For explicit caching. */
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
  /** Tokens read from the cache. */
  readonly read: number;
  /** Tokens paid at the write price; 0 for vendors that write for free. */
  readonly written: number;
  /** Tokens that were neither read nor written. */
  readonly fresh: number;
  /** In fresh input tokens, output included. */
  readonly cost: number;
  /** The first block that differs from the longest live prefix; null if no live prefix continues differently. */
  readonly brokeAt: number | null;
}

export interface CacheReport {
  readonly requests: readonly CacheOutcome[];
  readonly total: Omit<CacheOutcome, 'brokeAt'> & { readonly output: number; readonly hitRate: number };
}

/** Simulates a vendor's cache over a sequence of requests. Each is answered before the next is sent. */
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

/** A request in the tree of all earlier ones. */
interface Path {
  readonly nodes: readonly PrefixNode[];
  /** `sums[n]` is the token count of the first n blocks. */
  readonly sums: readonly number[];
  /** Number of leading blocks that were sent before and are still alive. */
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
      return atBreakpoints(path, request, { ...rules, ...rules.match }, alive);
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
  { minimumTokens, most, lookbackBlocks }: { minimumTokens: number; most: number; lookbackBlocks: number },
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
  // The blocks behind a request are its answer if they match its exact size. Otherwise only its input counts.
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
 * All prefixes sent so far, as a compressed tree of blocks. Requests that begin alike share a path; nodes stand only
 * where they part, end or have a breakpoint. So a request costs one comparison per shared block and nothing for the
 * rest.
 */
interface PrefixNode {
  /** From the parent to here: `blocks[from]` to `blocks[to - 1]`, counted from the start of the request. */
  readonly blocks: readonly { readonly hash: string }[];
  from: number;
  readonly to: number;
  /** By the hash of their first block. */
  readonly children: Map<string, PrefixNode>;
  /** Time of the last request through here; -Infinity if none. */
  sentAt: number;
  /** Last use of the prefix up to here as one cached unit; -Infinity if none. */
  cachedAt: number;
  /** Size of the answer to the last request that ended here. */
  answerTokens: number;
}

type Blocks = PrefixNode['blocks'];

function prefixNode(blocks: Blocks = [], from = 0, to = 0): PrefixNode {
  return { blocks, from, to, children: new Map(), sentAt: -Infinity, cachedAt: -Infinity, answerTokens: 0 };
}

/** The nodes on a request's path, with one at each of `stops`, which ascend to its end. Creates missing nodes. */
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

/** True if any request continued from here after `since`. */
function wentOn({ children }: PrefixNode, since: number): boolean {
  return [...children.values()].some(({ sentAt }) => sentAt > since);
}
