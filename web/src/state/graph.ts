import type { AgentView, Link, Projection } from '../../../src/library/projection/model.ts';
import type { TreeNode } from '../../../src/library/projection/tree.ts';

/** A node of the graph: an agent, a person (or the runtime), or all those for whom there is no room. */
export interface GraphNode {
  id: string;
  kind: 'agent' | 'person' | 'others';
  name: string;
}

/** Everything that one node has addressed to another, in one direction. */
export interface GraphEdge {
  id: string;
  from: string;
  to: string;
  messages: number;
  tasks: number;
  handoffs: number;
  /** Seq of the newest message in the conversation shown; 0 if there is none. */
  seq: number;
  /** Thread of the newest task that was given in another conversation. */
  thread: string | null;
}

export interface Graph {
  nodes: GraphNode[];
  edges: GraphEdge[];
  /** The node that stands for a participant of the conversation. */
  nodeOf: (key: string) => string;
}

export const MAX_NODES = 30;
export const OTHERS = 'others';
const NO_COUNTS = { messages: 0, tasks: 0, handoffs: 0 };

/** The data of the graph at a moment: a projection, and the tasks that agents have given in threads by then. */
export interface Talked extends Pick<Projection, 'links' | 'agents'> {
  inThreads: readonly TreeNode[];
}

export const agentKey = (id: string) => `agent ${id}`;

function senderKey({ by, from }: Link): string {
  return by === 'agent' ? agentKey(from) : `${by} ${from}`;
}

/** The participants as of `latest`, and their messages as of `shown`, so that no node moves when the page shows the past. */
export function graphOf(latest: Talked, shown: Talked): Graph {
  const all = [...pairsOf(latest)];
  const traffic = new Map<string, number>();
  const names = new Map<string, GraphNode>();
  const meet = (id: string, node: Omit<GraphNode, 'id'>) => {
    if (!names.has(id)) names.set(id, { id, ...node });
  };
  for (const agent of Object.values(latest.agents)) meet(agentKey(agent.id), agentNode(agent));
  for (const { from, to, counts, sender } of all) {
    meet(from, sender);
    meet(to, agentNode(latest.agents[to.slice(AGENT.length)] ?? { name: to.slice(AGENT.length) }));
    for (const id of [from, to]) traffic.set(id, (traffic.get(id) ?? 0) + sumOf(counts));
  }
  const seen = busiest([...names.keys()], traffic);
  const nodes = [...names.values()].filter(({ id }) => seen.has(id));
  const left = names.size - nodes.length;
  if (left > 0) nodes.push({ id: OTHERS, kind: 'others', name: left === 1 ? '1 other' : `${left} others` });
  const nodeOf = (key: string) => (seen.has(key) ? key : OTHERS);
  return { nodes, edges: edgesOf(pairsOf(shown), nodeOf), nodeOf };
}

const AGENT = agentKey('');

function agentNode({ name }: Pick<AgentView, 'name'>): Omit<GraphNode, 'id'> {
  return { kind: 'agent', name };
}

/** The keys with the most traffic; of equal ones the first. */
function busiest(keys: readonly string[], traffic: ReadonlyMap<string, number>): ReadonlySet<string> {
  if (keys.length <= MAX_NODES) return new Set(keys);
  return new Set(keys.toSorted((a, b) => (traffic.get(b) ?? 0) - (traffic.get(a) ?? 0)).slice(0, MAX_NODES));
}

interface Pair {
  from: string;
  to: string;
  sender: Omit<GraphNode, 'id'>;
  counts: typeof NO_COUNTS;
  seq: number;
  thread: string | null;
}

function* pairsOf({ links, inThreads }: Talked): Generator<Pair> {
  for (const link of links) {
    const sender: Pair['sender'] = { kind: link.by === 'agent' ? 'agent' : 'person', name: link.from };
    const place = { from: senderKey(link), to: agentKey(link.to), seq: link.seq, thread: null };
    yield { ...place, sender, counts: link };
  }
  for (const { from, to, thread } of inThreads) {
    if (from === null) continue;
    const place = { from: agentKey(from), to: agentKey(to), seq: 0, thread };
    yield { ...place, sender: { kind: 'agent', name: from }, counts: { ...NO_COUNTS, tasks: 1 } };
  }
}

/** One edge for each direction. Participants that share a node also share its edges. */
function edgesOf(pairs: Iterable<Pair>, nodeOf: Graph['nodeOf']): GraphEdge[] {
  const edges = new Map<string, GraphEdge>();
  for (const pair of pairs) {
    const [from, to] = [nodeOf(pair.from), nodeOf(pair.to)];
    const id = `${from} > ${to}`;
    const edge = edges.get(id) ?? { id, from, to, ...NO_COUNTS, seq: 0, thread: null };
    edges.set(id, {
      ...edge,
      messages: edge.messages + pair.counts.messages,
      tasks: edge.tasks + pair.counts.tasks,
      handoffs: edge.handoffs + pair.counts.handoffs,
      seq: Math.max(edge.seq, pair.seq),
      thread: pair.thread ?? edge.thread,
    });
  }
  return [...edges.values()];
}

export function sumOf({ messages, tasks, handoffs }: typeof NO_COUNTS): number {
  return messages + tasks + handoffs;
}

/** Most new events that count as passing messages; more are a jump. */
const MOST_PASSING = 50;

/** The edges on which messages have passed since the page was opened, or last jumped to a moment. */
export interface Passing {
  seq: number;
  edges: ReadonlySet<string>;
}

/** The passing edges at the seq `seq`. Earlier ones stay until the page jumps or goes back. */
export function passOn(before: Passing, edges: readonly GraphEdge[], seq: number): Passing {
  if (seq === before.seq) return before;
  if (seq < before.seq || seq - before.seq > MOST_PASSING) return { seq, edges: new Set() };
  const passed = edges.filter((edge) => edge.seq > before.seq && edge.seq <= seq);
  return { seq, edges: new Set([...before.edges, ...passed.map(({ id }) => id)]) };
}
