import { type AnyMachineSnapshot, type AnyStateMachine, createMachine, transition } from 'xstate';
import { AGENT_STEPS, agentLifecycle } from '../../src/machines/agent-lifecycle.ts';
import { type MockInstance, vi } from 'vitest';

/** One arrow of a machine: the position of a transition in the config. */
export interface Arrow {
  machine: string;
  /** State path that names the event; empty for the machine itself. */
  from: string;
  event: string;
  /** Position among the alternatives of the same event. */
  index: number;
  guard: string | null;
  /** Target state path; null for a transition that stays. */
  to: string | null;
}

/** An event sent to a machine, with the state that it met. */
export interface Sent {
  machine: AnyStateMachine;
  value: unknown;
  context: unknown;
  event: { type: string };
}

export interface Recording {
  sent: Sent[];
  stop(): void;
}

/**
 * Records every distinct event sent to one of the machines. Both `transition()` and actors call `transition`. Agents look up
 * what was decided once, so what they look up is recorded.
 */
export function recordMachines(machines: readonly AnyStateMachine[]): Recording {
  const sent: Sent[] = [];
  const known = new Set<string>();
  const spies: MockInstance[] = [];
  function record(machine: AnyStateMachine, { value, context }: AnyMachineSnapshot, event: Sent['event']) {
    const key = JSON.stringify([machine.id, value, context, event]);
    if (!known.has(key)) sent.push({ machine, value, context, event });
    known.add(key);
  }
  for (const machine of machines) {
    const original = machine.transition.bind(machine);
    const spy = vi.spyOn(machine, 'transition');
    spy.mockImplementation((snapshot, event, scope) => {
      record(machine, snapshot as AnyMachineSnapshot, event as Sent['event']);
      return original(snapshot, event, scope);
    });
    spies.push(spy);
  }
  for (const [state, steps] of machines.includes(agentLifecycle) ? AGENT_STEPS : []) {
    const original = steps.get.bind(steps);
    const spy = vi.spyOn(steps, 'get');
    spy.mockImplementation((outcome) => {
      const step = original(outcome);
      if (step) record(agentLifecycle, state, step.event);
      return step;
    });
    spies.push(spy);
  }
  return { sent, stop: () => spies.forEach((spy) => spy.mockRestore()) };
}

interface Config {
  on?: Record<string, unknown>;
  states?: Record<string, Config>;
}

/** Every arrow of a machine, in the order of its config. */
export function arrowsOf(machine: AnyStateMachine): Arrow[] {
  const nodes = [machine.root];
  for (const node of nodes) nodes.push(...Object.values(node.states));
  return nodes.flatMap((node) =>
    [...node.transitions].flatMap(([event, transitions]) =>
      transitions.map(({ guard, target }, index) => ({
        machine: machine.id,
        from: node.path.join('.'),
        event,
        index,
        guard: typeof guard === 'string' ? guard : null,
        to: target?.map(({ path }) => path.join('.')).join(' ') ?? null,
      })),
    ),
  );
}

export function nameOf({ machine, from, event, guard, to }: Arrow): string {
  return `${machine}: ${from || '*'} ${event}${guard === null ? '' : ` [${guard}]`} -> ${to ?? 'itself'}`;
}

/** The names of the arrows that one event took. */
export function takenBy({ machine, value, context, event }: Sent): string[] {
  const snapshot = machine.resolveState({ value: value as never, context });
  const arrows = arrowsOf(machine);
  return machine.getTransitionData(snapshot, event as never).flatMap((taken) => {
    const from = taken.source.path.join('.');
    const index = taken.source.transitions.get(taken.eventType)?.indexOf(taken);
    return arrows
      .filter((arrow) => arrow.from === from && arrow.event === taken.eventType && arrow.index === index)
      .map(nameOf);
  });
}

/** A copy of a machine without one arrow. */
export function without(machine: AnyStateMachine, { from, event, index }: Arrow): AnyStateMachine {
  const config = structuredClone(machine.config) as Config;
  let node = config;
  for (const key of from === '' ? [] : from.split('.')) node = node.states?.[key] ?? {};
  const given = node.on?.[event];
  if (node.on && Array.isArray(given)) node.on[event] = given.filter((_, position) => position !== index);
  else delete node.on?.[event];
  return createMachine(config as never, machine.implementations as never);
}

/** Result of an event: state and context, as JSON; null if the machine does not accept it. */
export function outcomeIn(machine: AnyStateMachine, { value, context, event }: Sent): string | null {
  const snapshot = machine.resolveState({ value: value as never, context });
  if (!snapshot.can(event as never)) return null;
  const [next] = transition(machine, snapshot, event as never);
  return JSON.stringify([next.value, next.context]);
}
