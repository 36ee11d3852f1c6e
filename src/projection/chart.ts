/** A machine as it is drawn, in px from the upper left corner. Made by `npm run charts`. */
export interface Chart {
  id: string;
  /** Of the machine that it shows. */
  hash: string;
  width: number;
  height: number;
  /** Parents before their children. */
  states: ChartState[];
  /** Those with the same ends share their line, and have a label each. */
  edges: ChartEdge[];
  /** What is accepted in every state of `in` (of the machine, where that is empty) and drawn nowhere. */
  anywhere: { event: string; guard: string | null; target: string; in: string }[];
}

export interface ChartState extends Box {
  path: string;
  label: string;
  parent: string | null;
  /** Where its parent begins. */
  initial: boolean;
  final: boolean;
  effect: string | null;
}

export interface ChartEdge {
  from: string;
  to: string;
  event: string;
  guard: string | null;
  points: Point[];
  /** Where the event is written, centred: 10 px of a monospaced font. */
  label: Box;
  /** The event, and in brackets its guard; long ones are broken. */
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
