import type { AnyStateMachine, AnyStateNode } from 'xstate';

/** A machine as plain data: every state with its effect and the events it accepts, inherited ones included. */
export interface MachineDescription {
  id: string;
  states: { path: string; initial: boolean; effect: string | null; events: EventDescription[] }[];
}
export interface EventDescription {
  event: string;
  guard: string | null;
  target: string;
}

export function describeMachine(machine: AnyStateMachine): MachineDescription {
  return { id: machine.id, states: leaves(machine.root).map(describeState) };
}

function leaves(node: AnyStateNode): AnyStateNode[] {
  const children = Object.values(node.states);
  return children.length === 0 ? [node] : children.flatMap(leaves);
}

function describeState(node: AnyStateNode): MachineDescription['states'][number] {
  return {
    path: node.path.join('.'),
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
  for (let at: AnyStateNode | undefined = node; at; at = at.parent) {
    for (const transitions of at.transitions.values()) {
      for (const { eventType, guard, target } of transitions) {
        yield {
          event: eventType,
          guard: typeof guard === 'string' ? guard : null,
          target: target?.map((state) => state.path.join('.')).join(', ') ?? node.path.join('.'),
        };
      }
    }
  }
}
