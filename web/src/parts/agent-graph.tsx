import { useSignal } from '@preact/signals';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { Projection } from '../../../src/library/projection/model.ts';
import type { Tree } from '../../../src/library/projection/tree.ts';
import { shownCondition } from '../../../src/library/projection/needs.ts';
import { Condition } from '../shared/condition.tsx';
import { plural, whole } from '../shared/format.ts';
import { useTree } from '../state/fetched-tree.ts';
import {
  type Graph,
  type GraphEdge,
  graphOf,
  type GraphNode,
  type Passing,
  passOn,
  sumOf,
  type Talked,
} from '../state/graph.ts';
import { type GraphLayout, layoutGraph, lineBetween, thicknessOf } from '../state/graph-layout.ts';
import { live, shown } from '../state/live.ts';
import { isPast } from '../state/past.ts';
import { latestOf } from '../state/graph-place.ts';
import { go } from '../state/route.ts';
import { selectAgent, selectedAgent } from '../state/selection.ts';
import { treeAt } from '../state/tree-at.ts';
import { GraphTable } from './graph-table.tsx';
import '../style/agent-graph.css';
import '../style/loaded.css';

/** With more edges than these, only edges under the pointer or focus show their counts. */
const MOST_LABELS = 14;

/** Who has written to whom, and how often: people at the top, agents below, one line for each direction. */
export function AgentGraph() {
  const latest = live.value;
  const now = shown.value;
  if (!latest || !now) return <p class="detail-note">Reading …</p>;
  return <Whole latest={latest} now={now} />;
}

function Whole({ latest, now }: { latest: Projection; now: Projection }) {
  const hasTasks = latest.links.some(({ tasks }) => tasks > 0);
  const found = useTree(hasTasks ? latest.conversation : null);
  const tree = found.state === 'there' ? found.value : null;
  const isLive = !isPast.value;
  const graph = useMemo(() => {
    const all = withThreads(latest, tree, true);
    return graphOf(all, isLive ? all : withThreads(now, tree, false));
  }, [latest, now, tree, isLive]);
  const hot = useSignal<string | null>(null);
  const nameOf = (id: string) => graph.nodes.find((node) => node.id === id)?.name ?? id;
  return (
    <div class="graph">
      <Drawing graph={graph} now={now} hot={hot} nameOf={nameOf} />
      {graph.edges.length === 0 && <p class="detail-note">Nobody has written to an agent.</p>}
      {now.totals.unlinked > 0 && (
        <p class="detail-note">{plural(now.totals.unlinked, 'message')} between other pairs have no line.</p>
      )}
      {tree !== null && tree.left.threads > 0 && (
        <p class="detail-note">{plural(tree.left.threads, 'thread')} were not read.</p>
      )}
      <GraphTable edges={graph.edges} nameOf={nameOf} onLook={(edge) => (hot.value = edge)} />
    </div>
  );
}

function withThreads(projection: Projection, tree: Tree | null, isLive: boolean): Talked {
  const nodes = tree === null ? [] : treeAt(tree, projection, { isLive });
  const inThreads = nodes.filter(
    ({ kind, conversation }) => kind === 'task' && conversation !== projection.conversation,
  );
  return { ...projection, inThreads };
}

interface DrawingProps {
  graph: Graph;
  now: Projection;
  /** The node or edge under the pointer or focus. */
  hot: { value: string | null };
  nameOf: (id: string) => string;
}

function Drawing({ graph, now, hot, nameOf }: DrawingProps) {
  const [room, box] = useRoom();
  const members = graph.nodes.map(({ id }) => id).join('\n');
  const layout = useMemo(() => layoutGraph(graph.nodes, room), [members, room]);
  const lit = usePassing(graph.edges, now.seq);
  const looked = hot.value;
  const edges = graph.edges.map((edge) => ({
    edge,
    isHot: looked === edge.id || looked === edge.from || looked === edge.to,
  }));
  const labelled = edges.filter(({ isHot }) => (looked === null ? edges.length <= MOST_LABELS : isHot));
  const newest = Math.max(...graph.edges.map(({ seq }) => seq));
  return (
    // Positions must be the same in every writing direction.
    <div class="graph-drawing" dir="ltr" ref={box} style={{ height: `${layout.height}px` }}>
      <svg width={layout.width} height={layout.height} aria-hidden="true">
        {edges.map(({ edge, isHot }) => (
          <Line
            key={edge.id}
            edge={edge}
            layout={layout}
            isNewest={edge.seq === newest && newest > 0}
            isLit={lit.has(edge.id)}
            isDim={looked !== null && !isHot}
            onLook={(isOver) => (hot.value = isOver ? edge.id : null)}
          />
        ))}
      </svg>
      {labelled.map(({ edge }) => (
        <Label key={edge.id} edge={edge} layout={layout} isFull={looked === edge.id} nameOf={nameOf} />
      ))}
      {graph.nodes.map((node) => (
        <Node
          key={node.id}
          node={node}
          now={now}
          edges={graph.edges}
          layout={layout}
          onLook={(isOver) => (hot.value = isOver ? node.id : null)}
        />
      ))}
    </div>
  );
}

interface LineProps {
  edge: GraphEdge;
  layout: GraphLayout;
  isNewest: boolean;
  isLit: boolean;
  isDim: boolean;
  onLook: (isOver: boolean) => void;
}

/** For mouse and touch; the table below has the same as links. */
function Line({ edge, layout, isNewest, isLit, isDim, onLook }: LineProps) {
  const width = thicknessOf(sumOf(edge));
  const line = lineBetween(layout, edge, width);
  if (!line) return null;
  const kind = edge.tasks + edge.handoffs > 0 ? 'graph-gives' : '';
  return (
    <g
      class={`graph-line ${kind} ${isNewest ? 'graph-newest' : ''} ${isDim ? 'graph-dim' : ''}`}
      onPointerEnter={() => onLook(true)}
      onPointerLeave={() => onLook(false)}
      onClick={() => go(latestOf(edge))}
    >
      <path class="graph-reach" d={line.path} />
      <path class="graph-stroke" d={line.path} stroke-width={width} />
      <polygon points={line.head} />
      {isLit && (
        <path key={edge.seq} class="graph-pass" d={line.path} pathLength={1} stroke-width={width + 3} />
      )}
    </g>
  );
}

function Label({ edge, layout, isFull, nameOf }: Pick<LineProps, 'edge' | 'layout'> & LabelProps) {
  const line = lineBetween(layout, edge);
  if (!line) return null;
  const { x, y } = line.label;
  const left = isFull ? Math.max(HALF_PX, Math.min(layout.width - HALF_PX, x)) : x;
  return (
    <span
      class={`graph-label ${isFull ? 'graph-full' : ''}`}
      style={{ left: `${left}px`, top: `${y}px` }}
      aria-hidden="true"
    >
      {isFull ? `${nameOf(edge.from)} → ${nameOf(edge.to)}: ${countsOf(edge)}` : whole(sumOf(edge))}
    </span>
  );
}

/** Half of the widest text label. */
const HALF_PX = 116;

interface LabelProps {
  isFull: boolean;
  nameOf: (id: string) => string;
}

/** 3 messages, 1 task, 2 hand-overs */
function countsOf({ messages, tasks, handoffs }: GraphEdge): string {
  const parts = [
    messages > 0 && plural(messages, 'message'),
    tasks > 0 && plural(tasks, 'task'),
    handoffs > 0 && plural(handoffs, 'hand-over'),
  ];
  return parts.filter((part) => part !== false).join(', ');
}

interface NodeProps {
  node: GraphNode;
  now: Projection;
  edges: readonly GraphEdge[];
  layout: GraphLayout;
  onLook: (isOver: boolean) => void;
}

function Node({ node, now, edges, layout, onLook }: NodeProps) {
  const place = layout.places.get(node.id);
  if (!place) return null;
  const agent = node.kind === 'agent' ? now.agents[node.id.slice('agent '.length)] : undefined;
  const own = edges.filter(({ from, to }) => from === node.id || to === node.id);
  const sent = total(own.filter(({ from }) => from === node.id));
  const received = total(own.filter(({ to }) => to === node.id));
  const isThere = agent !== undefined || own.length > 0;
  const isChosen = agent !== undefined && selectedAgent.value?.id === agent.id;
  const style = {
    left: `${place.x}px`,
    top: `${place.y}px`,
    width: `${layout.box.width}px`,
    height: `${layout.box.height}px`,
  };
  const words = `${whole(sent)} sent, ${whole(received)} received`;
  const last = own.toSorted((a, b) => b.seq - a.seq)[0];
  return (
    <button
      type="button"
      class={`graph-node graph-${node.kind} ${isThere ? '' : 'graph-later'} ${isChosen ? 'graph-chosen' : ''}`}
      style={style}
      title={`${node.name}: ${isThere ? words : 'not here at this moment'}`}
      aria-pressed={isChosen}
      aria-disabled={!agent && !last}
      onClick={() => (agent ? selectAgent(agent) : last && go(latestOf(last)))}
      onPointerEnter={() => onLook(true)}
      onPointerLeave={() => onLook(false)}
      onFocus={() => onLook(true)}
      onBlur={() => onLook(false)}
    >
      {agent ? (
        <Condition of={shownCondition(agent)} isTerse />
      ) : (
        node.kind === 'person' && (
          <svg class="icon" viewBox="0 0 16 16" width="14" height="14" aria-hidden="true">
            <path d="M8 2a3 3 0 1 0 0 6 3 3 0 0 0 0-6M2.5 14a5.5 5 0 0 1 11 0" />
          </svg>
        )
      )}
      <bdi>{node.name}</bdi>
      <span class="unseen">, {isThere ? words : 'not here at this moment'}</span>
    </button>
  );
}

function total(edges: readonly GraphEdge[]): number {
  return edges.reduce((sum, edge) => sum + sumOf(edge), 0);
}

/** The edges on which a message has passed while the graph was shown. The stroke of each runs once. */
function usePassing(edges: readonly GraphEdge[], seq: number): ReadonlySet<string> {
  const passing = useRef<Passing>({ seq, edges: new Set() });
  passing.current = passOn(passing.current, edges, seq);
  return passing.current.edges;
}

/** The measured room for the drawing. */
function useRoom() {
  const box = useRef<HTMLDivElement>(null);
  const [room, setRoom] = useState({ width: 600, height: 320 });
  useEffect(() => {
    const view = box.current?.parentElement;
    if (!view) return;
    const observer = new ResizeObserver(() => {
      const { clientWidth: width, clientHeight } = view;
      const height = Math.max(240, clientHeight - TABLE_PX);
      setRoom((before) => (before.width === width && before.height === height ? before : { width, height }));
    });
    observer.observe(view);
    return () => observer.disconnect();
  }, []);
  return [room, box] as const;
}

/** Height of the summary of the table below. */
const TABLE_PX = 40;
