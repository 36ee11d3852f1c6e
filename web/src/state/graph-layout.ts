import type { GraphNode } from './graph.ts';

/** Centre of a node's box. */
export interface Place {
  x: number;
  y: number;
}

export interface GraphLayout {
  width: number;
  height: number;
  box: Box;
  places: ReadonlyMap<string, Place>;
}

export interface Box {
  width: number;
  height: number;
}

export interface Line {
  path: string;
  /** The points of the arrowhead. */
  head: string;
  /** Where its label is. */
  label: Place;
}

const BOX_HEIGHT = 28;
const WIDE = 140;
const NARROW = 100;
/** Below this width, boxes are narrow. */
const NARROW_PX = 560;
const GAP = 8;
const EDGE = 12;
const ROW = BOX_HEIGHT + GAP / 2;
/** Distance between the people and the agents. */
const STEP_DOWN = 48;
const RADIUS_X = 340;
const MIN_RADIUS_Y = 80;
const MAX_RADIUS_Y = 300;
const RADIUS_STEP = 20;

/**
 * Places people in rows at the top, and agents and others on an ellipse below, in order. If the ellipse does not fit, agents
 * alternate between two sides. The same nodes and room give the same places; no two boxes overlap.
 */
export function layoutGraph(nodes: readonly GraphNode[], room: Box): GraphLayout {
  const width = Math.max(room.width, 2 * NARROW + GAP + 2 * EDGE);
  const box = { width: width < NARROW_PX ? NARROW : WIDE, height: BOX_HEIGHT };
  const people = nodes.filter(({ kind }) => kind === 'person');
  const agents = nodes.filter(({ kind }) => kind !== 'person');
  const places = new Map<string, Place>();
  const top = placeRows(places, people, { width, box });
  placeAround(places, agents, { width, box, top, height: room.height });
  const lowest = Math.max(0, ...[...places.values()].map(({ y }) => y));
  return { width, height: Math.max(lowest + box.height / 2 + EDGE, room.height), box, places };
}

/** Returns the y at which the agents may begin. */
function placeRows(
  places: Map<string, Place>,
  people: readonly GraphNode[],
  { width, box }: { width: number; box: Box },
): number {
  if (people.length === 0) return EDGE;
  const most = Math.max(1, Math.floor((width - 2 * EDGE + GAP) / (box.width + GAP)));
  const rows = Math.ceil(people.length / most);
  const each = Math.ceil(people.length / rows);
  people.forEach(({ id }, index) => {
    const row = Math.floor(index / each);
    const count = Math.min(each, people.length - row * each);
    const share = ((index % each) + 0.5) / count;
    places.set(id, {
      x: EDGE + share * (width - 2 * EDGE),
      y: EDGE + row * (box.height + GAP) + box.height / 2,
    });
  });
  return EDGE + rows * (box.height + GAP) + STEP_DOWN;
}

interface Room {
  width: number;
  box: Box;
  top: number;
  height: number;
}

function placeAround(places: Map<string, Place>, agents: readonly GraphNode[], room: Room): void {
  const { width, box, top } = room;
  const [middle, radius] = [width / 2, Math.min(RADIUS_X, (width - box.width) / 2 - EDGE)];
  const turn = (2 * Math.PI) / Math.max(1, agents.length);
  // With an even number, symmetry needs nobody at the top.
  const first = -Math.PI / 2 - (agents.length % 2 === 0 ? turn / 2 : 0);
  const wanted = (room.height - top - box.height - EDGE) / 2;
  const least = agents.length < 2 ? 0 : Math.min(MAX_RADIUS_Y, Math.max(MIN_RADIUS_Y, wanted));
  for (let down = least; down <= MAX_RADIUS_Y; down += RADIUS_STEP) {
    const found = agents.map((_, index): Place => {
      const angle = first + index * turn;
      const across = agents.length < 2 ? 0 : radius;
      return {
        x: middle + across * Math.cos(angle),
        y: top + box.height / 2 + down * (1 + Math.sin(angle)),
      };
    });
    if (!hasOverlap(found, box)) return keep(places, agents, found);
  }
  const sides: Place[] = [];
  for (const index of agents.keys()) {
    const share = (2 * (index + 0.5)) / agents.length - 1;
    const across = radius * Math.sqrt(1 - share * share);
    const x = middle + (index % 2 === 0 ? across : -across);
    const [sameSide, other] = [sides[index - 2], sides[index - 1]];
    const isBeside = other !== undefined && Math.abs(x - other.x) >= box.width + GAP;
    const y = Math.max(
      top + box.height / 2,
      (sameSide?.y ?? -Infinity) + ROW,
      (other?.y ?? -Infinity) + (isBeside ? ROW / 2 : ROW),
    );
    sides.push({ x, y });
  }
  keep(places, agents, sides);
}

function keep(places: Map<string, Place>, nodes: readonly GraphNode[], found: readonly Place[]): void {
  nodes.forEach(({ id }, index) => {
    const place = found[index];
    if (place) places.set(id, place);
  });
}

function hasOverlap(places: readonly Place[], { width, height }: Box): boolean {
  return places.some(({ x, y }, index) =>
    places
      .slice(index + 1)
      .some((other) => Math.abs(x - other.x) < width + GAP && Math.abs(y - other.y) < height + GAP / 2),
  );
}

const SAMPLES = 60;
/** Distance between the two directions, and how far lines bend towards the centre. */
const APART = 20;
const BEND = 0.22;
const HEAD_PX = 9;
const MIN_PX = 1.25;
const MAX_PX = 7;

/** Thickness of the line for a number of messages, px: each doubling adds the same amount. */
export function thicknessOf(count: number): number {
  return Math.min(MAX_PX, MIN_PX + 0.8 * Math.log2(Math.max(1, count)));
}

/** A bent line from the edge of one box to the edge of another. Null for a line from a node to itself. */
export function lineBetween(
  layout: GraphLayout,
  { from, to }: { from: string; to: string },
  thickness = MIN_PX,
): Line | null {
  const [a, b] = [layout.places.get(from), layout.places.get(to)];
  if (!a || !b || from === to) return null;
  const curve = bent(a, b, { x: layout.width / 2, y: layout.height / 2 });
  const shares = Array.from({ length: SAMPLES + 1 }, (_, index) => index / SAMPLES).filter((share) => {
    const at = pointOn(curve, share, share);
    return !isInside(at, a, layout.box) && !isInside(at, b, layout.box);
  });
  const [start = 0, end = 1] = [shares[0], shares.at(-1)];
  const tip = pointOn(curve, end, end);
  const size = HEAD_PX + thickness;
  const neck = shares.findLast((share) => distance(pointOn(curve, share, share), tip) >= size) ?? start;
  const base = pointOn(curve, neck, neck);
  const angle = Math.atan2(tip.y - base.y, tip.x - base.x);
  const wing = (side: number): Place => ({
    x: base.x + side * (size / 2) * Math.sin(angle),
    y: base.y - side * (size / 2) * Math.cos(angle),
  });
  const half = (start + end) / 2;
  return {
    path: `M${point(pointOn(curve, start, start))}Q${point(pointOn(curve, start, neck))} ${point(base)}`,
    head: [tip, wing(1), wing(-1)].map(point).join(' '),
    label: pointOn(curve, half, half),
  };
}

type Curve = readonly [Place, Place, Place];

/** Bent towards the centre of the drawing, and to one side, so that the other direction has a line of its own. */
function bent(a: Place, b: Place, middle: Place): Curve {
  const length = Math.max(1, distance(a, b));
  const apart = Math.min(APART, length / 6);
  const between = { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 };
  const control = {
    x: between.x + BEND * (middle.x - between.x) - ((b.y - a.y) / length) * apart,
    y: between.y + BEND * (middle.y - between.y) + ((b.x - a.x) / length) * apart,
  };
  return [a, control, b];
}

/** The point at a fraction of a curve. With two fractions, the control point of the part between them. */
function pointOn([a, control, b]: Curve, from: number, to: number): Place {
  const [first, both, last] = [(1 - from) * (1 - to), (1 - from) * to + from * (1 - to), from * to];
  return {
    x: first * a.x + both * control.x + last * b.x,
    y: first * a.y + both * control.y + last * b.y,
  };
}

function distance(a: Place, b: Place): number {
  return Math.hypot(a.x - b.x, a.y - b.y);
}

function isInside({ x, y }: Place, middle: Place, { width, height }: Box): boolean {
  return Math.abs(x - middle.x) <= width / 2 + 2 && Math.abs(y - middle.y) <= height / 2 + 2;
}

function point({ x, y }: Place): string {
  return `${x.toFixed(1)},${y.toFixed(1)}`;
}
