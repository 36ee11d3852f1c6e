import type { AnyStateMachine, AnyStateNode, AnyTransitionDefinition } from 'xstate';

/** A machine as plain data: every state with its effect and the events it accepts, inherited ones included. */
interface MachineDescription {
  id: string;
  states: { path: string; initial: boolean; effect: string | null; events: EventDescription[] }[];
}
export interface EventDescription {
  /** Name of the event of the machine. */
  event: string;
  /** Name of the condition. Null: none. */
  guard: string | null;
  /** State that it leads to. */
  target: string;
}

export function describeMachine(machine: AnyStateMachine): MachineDescription {
  return { id: machine.id, states: leaves(machine.root).map(describeState) };
}

/**
 * The events that a machine accepts in a state, by its path. Guards are named, not evaluated. For a compound state: the
 * events that all its substates accept. For an unknown path: nothing.
 */
export function legalIn(machine: AnyStateMachine, path: string): EventDescription[] {
  let node: AnyStateNode | undefined = machine.root;
  for (const name of path.split('.')) node = node?.states[name];
  return node ? [...acceptedBy(node)] : [];
}

/** A machine for drawing: nested boxes with arrows between them. */
export interface ChartDescription {
  id: string;
  states: {
    path: string;
    label: string;
    parent: string | null;
    initial: boolean;
    final: boolean;
    effect: string | null;
  }[];
  edges: { from: string; to: string; event: string; guard: string | null }[];
  /**
   * Events that are listed under the state `in`, because their arrows would hide the others: those that stay within it,
   * those of the whole machine, and those that lead from several outermost states to the same one.
   */
  anywhere: (EventDescription & { in: string })[];
}

export function describeChart(machine: AnyStateMachine): ChartDescription {
  const nodes = [...below(machine.root)];
  const states = nodes.map((node) => ({
    path: pathOf(node),
    label: node.key,
    parent: node.parent?.parent ? pathOf(node.parent) : null,
    initial: node.parent?.initial.target.includes(node) ?? false,
    final: node.type === 'final',
    effect: node.tags[0] ?? null,
  }));
  const edges: ChartDescription['edges'] = [];
  const anywhere: ChartDescription['anywhere'] = [];
  for (const node of [machine.root, ...nodes]) {
    const from = pathOf(node);
    for (const { event, guard, target } of ownEvents(node, from)) {
      if (target === from || target.startsWith(`${from}.`) || from === '')
        anywhere.push({ event, guard, target, in: from });
      else edges.push({ from, to: target, event, guard });
    }
  }
  const [drawn, listed] = [edges.filter((edge) => !isCommon(edge)), edges.filter(isCommon)];
  for (const { from, to, event, guard } of listed) anywhere.push({ event, guard, target: to, in: from });
  return { id: machine.id, states, edges: drawn, anywhere };

  /** Whether the same event leads from several outermost states to the same one. */
  function isCommon({ from, to, event }: ChartDescription['edges'][number]): boolean {
    const isOuter = (path: string) => states.some((state) => state.path === path && state.parent === null);
    const isLeaf = states.every(({ parent }) => parent !== to);
    const origins = new Set(
      edges.filter((edge) => edge.event === event && edge.to === to).map((e) => e.from),
    );
    return isLeaf && isOuter(to) && isOuter(from) && origins.size > 1;
  }
}

function leaves(node: AnyStateNode): AnyStateNode[] {
  const children = Object.values(node.states);
  return children.length === 0 ? [node] : children.flatMap(leaves);
}

function* below(node: AnyStateNode): Generator<AnyStateNode> {
  for (const child of Object.values(node.states)) {
    yield child;
    yield* below(child);
  }
}

function describeState(node: AnyStateNode): MachineDescription['states'][number] {
  return {
    path: pathOf(node),
    initial: isInitial(node),
    effect: node.tags[0] ?? null,
    events: [...acceptedBy(node)],
  };
}

function isInitial(node: AnyStateNode): boolean {
  const parent = node.parent;
  if (!parent) return true;
  return parent.initial.target.includes(node) && isInitial(parent);
}

function* acceptedBy(node: AnyStateNode): Generator<EventDescription> {
  for (let at: AnyStateNode | undefined = node; at; at = at.parent) yield* ownEvents(at, pathOf(node));
}

/** The events that the state itself names. A transition without a target stays in `from`. */
function* ownEvents(node: AnyStateNode, from: string): Generator<EventDescription> {
  const transitions: Iterable<AnyTransitionDefinition[]> = node.transitions.values();
  for (const { eventType, guard, target } of [...transitions].flat()) {
    yield {
      event: eventType,
      guard: typeof guard === 'string' ? guard : null,
      target: target?.map(pathOf).join(', ') ?? from,
    };
  }
}

function pathOf(node: AnyStateNode): string {
  return node.path.join('.');
}
