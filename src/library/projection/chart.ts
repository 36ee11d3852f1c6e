/** The transitions of a state machine. */
export interface Transitions {
  edges: readonly Edge[];
  /** Events accepted in every state of `in`, and not drawn. Empty `in`: the whole machine. */
  anywhere: readonly { event: string; guard: string | null; target: string; in: string }[];
}

interface Edge {
  from: string;
  to: string;
  event: string;
  guard: string | null;
}

/** Drawing of a state machine, in px from the top left corner. Made by `npm run charts`. */
export interface Chart extends Transitions {
  id: string;
  /** Hash of the machine. */
  hash: string;
  width: number;
  height: number;
  /** Parents before their children. */
  states: ChartState[];
  /** Edges between the same two states share a line; each has its own label. */
  edges: ChartEdge[];
}

interface ChartState extends Box {
  path: string;
  label: string;
  parent: string | null;
  /** Whether this is the initial state of its parent. */
  initial: boolean;
  final: boolean;
  effect: string | null;
}

export interface ChartEdge extends Edge {
  points: Point[];
  /** Box of the centred label, in a 10 px monospaced font. */
  label: Box;
  /** The event and its guard in brackets; long ones are wrapped. */
  lines: string[];
}

export interface Point {
  x: number;
  y: number;
}

export interface Box extends Point {
  width: number;
  height: number;
}
