import { createHash } from 'node:crypto';
import elk, { type ElkEdgeSection, type ElkExtendedEdge, type ElkNode } from 'elkjs';
import type { Box, Chart, ChartEdge, Point } from '../src/library/projection/chart.ts';
import type { ChartDescription } from '../src/machines/describe.ts';

/** Widths in a monospaced font: state names at 11 px, events at 10 px. */
const STATE_CHAR_PX = 6.7;
const LABEL_CHAR_PX = 6.05;
const LABEL_LINE_PX = 12;
const LABEL_PAD_PX = 4;
/** Longer words are broken over several lines, so that the chart is as wide as a column of the page. */
const LABEL_CHARS = 11;
const STATE_PAD_PX = 20;
const STATE_HEIGHT_PX = 26;

const OPTIONS = {
  'elk.algorithm': 'layered',
  'elk.direction': 'DOWN',
  'elk.hierarchyHandling': 'INCLUDE_CHILDREN',
  'elk.edgeRouting': 'ORTHOGONAL',
  'elk.json.edgeCoords': 'ROOT',
  'elk.json.shapeCoords': 'ROOT',
  'elk.padding': '[top=4,left=4,bottom=4,right=4]',
};
/**
 * ELK takes these options per level: they are set on every box that contains boxes. As narrow as is still readable.
 */
const LEVEL = {
  'elk.layered.edgeLabels.centerLabelPlacementStrategy': 'HEAD_LAYER',
  'elk.layered.nodePlacement.strategy': 'SIMPLE',
  'elk.layered.thoroughness': '60',
  'elk.spacing.nodeNode': '10',
  'elk.spacing.edgeNode': '7',
  'elk.spacing.edgeEdge': '5',
  'elk.spacing.edgeLabel': '2',
  'elk.layered.spacing.nodeNodeBetweenLayers': '10',
  'elk.layered.spacing.edgeNodeBetweenLayers': '8',
  'elk.layered.spacing.edgeEdgeBetweenLayers': '6',
};
const GROUP_PADDING = '[top=28,left=8,bottom=10,right=8]';

/** Hash of the drawn content: a changed machine needs a new chart. */
export function hashOf(described: ChartDescription): string {
  return createHash('sha256').update(JSON.stringify(described)).digest('hex').slice(0, 12);
}

export async function layoutChart(described: ChartDescription): Promise<Chart> {
  const lines = linesOf(described.edges);
  const graph: ElkNode = {
    id: 'root',
    layoutOptions: { ...OPTIONS, ...LEVEL },
    children: nodesIn(described, null),
    edges: lines.map(({ from, to, labels }, index) => ({
      id: `e${index}`,
      // Reverses upward edges, so that ELK has no cycles to break and states keep the order of their definition.
      sources: [comesFirst(described, from, to) ? from : to],
      targets: [comesFirst(described, from, to) ? to : from],
      labels: [
        {
          // ELK does not place a label without text.
          text: labels.join(' '),
          width: Math.max(...labels.map((text) => text.length)) * LABEL_CHAR_PX + LABEL_PAD_PX,
          height: labels.length * LABEL_LINE_PX,
          layoutOptions: { 'elk.edgeLabels.inline': 'true' },
        },
      ],
    })),
  };
  const laidOut: ElkNode = await new elk.default().layout(graph);
  const boxes = new Map([...nodesOf(laidOut)].map((node) => [node.id, boxOf(node)]));
  const drawn = new Map((laidOut.edges ?? []).map((edge) => [edge.id, edge]));
  return {
    id: described.id,
    hash: hashOf(described),
    width: Math.ceil(laidOut.width ?? 0),
    height: Math.ceil(laidOut.height ?? 0),
    states: described.states.map((state) => ({ ...state, ...required(boxes.get(state.path), state.path) })),
    edges: lines.flatMap((line, index) =>
      edgesOf(described, line, required(drawn.get(`e${index}`), line.from)),
    ),
    anywhere: described.anywhere,
  };
}

interface Line {
  from: string;
  to: string;
  events: { event: string; guard: string | null }[];
  labels: string[];
}

/** Events between the same two states share a line. */
function linesOf(edges: ChartDescription['edges']): Line[] {
  const lines = new Map<string, Line>();
  for (const { from, to, event, guard } of edges) {
    const key = `${from} ${to}`;
    const line = lines.get(key) ?? { from, to, events: [], labels: [] };
    lines.set(key, line);
    line.events.push({ event, guard });
    line.labels.push(...labelOf(event, guard));
  }
  return [...lines.values()];
}

/** The guard is on the line below its event. */
function labelOf(event: string, guard: string | null): string[] {
  const words = event.split(/(?<=_)/);
  return guard === null ? wrap(words) : [...wrap(words), ...wrap(`[${guard}]`.split(/(?=[A-Z])/))];
}

function wrap(words: readonly string[]): string[] {
  const lines: string[] = [];
  for (const word of words) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + word.length <= LABEL_CHARS) lines[lines.length - 1] = last + word;
    else lines.push(word);
  }
  return lines;
}

function nodesIn(described: ChartDescription, parent: string | null): ElkNode[] {
  return described.states
    .filter((state) => state.parent === parent)
    .map(({ path, label }) => {
      const children = nodesIn(described, path);
      if (children.length > 0)
        return { id: path, children, layoutOptions: { ...LEVEL, 'elk.padding': GROUP_PADDING } };
      const width = Math.round(label.length * STATE_CHAR_PX + STATE_PAD_PX);
      return { id: path, width, height: STATE_HEIGHT_PX };
    });
}

function* nodesOf(node: ElkNode): Generator<ElkNode> {
  for (const child of node.children ?? []) {
    yield child;
    yield* nodesOf(child);
  }
}

/**
 * Which of two states stands above the other. A state without incoming edges comes first, such as the one in which an
 * agent rests. Otherwise the states, or those of their ancestors that share a box, keep the order of their
 * definition.
 */
function comesFirst({ states, edges }: ChartDescription, from: string, to: string): boolean {
  const isEntered = (path: string) => edges.some((edge) => edge.to === path);
  const isOuter = (path: string) =>
    states.some((each) => each.path === path && each.parent === null && !each.initial);
  if (isOuter(from) && !isEntered(from)) return true;
  const [a, b] = [from.split('.'), to.split('.')];
  const depth = a.findIndex((name, index) => name !== b[index]) + 1;
  const placeOf = (path: string[]) =>
    states.findIndex((state) => state.path === path.slice(0, depth).join('.'));
  return placeOf(a) <= placeOf(b);
}

function edgesOf(
  described: ChartDescription,
  { from, to, events }: Line,
  { sections, labels }: ElkExtendedEdge,
): ChartEdge[] {
  const down = (sections ?? []).flatMap(pointsOf);
  const points = comesFirst(described, from, to) ? down : down.toReversed();
  const box = boxOf(labels?.[0] ?? {});
  let { y } = box;
  return events.map(({ event, guard }) => {
    const written = labelOf(event, guard);
    const height = written.length * LABEL_LINE_PX;
    const label = { ...box, y: round(y), height };
    y += height;
    return { from, to, event, guard, points, label, lines: written };
  });
}

function pointsOf({ startPoint, bendPoints = [], endPoint }: ElkEdgeSection): Point[] {
  return [startPoint, ...bendPoints, endPoint].map(({ x, y }) => ({ x: round(x), y: round(y) }));
}

function boxOf({ x = 0, y = 0, width = 0, height = 0 }: Partial<Box>): Box {
  return { x: round(x), y: round(y), width: round(width), height: round(height) };
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

function required<T>(found: T | undefined, what: string): T {
  if (found === undefined) throw new Error(`the layout has no ${what}`);
  return found;
}
