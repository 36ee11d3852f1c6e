import { initialTransition, type SnapshotFrom, transition } from 'xstate';
import * as z from 'zod';
import { TroupeError } from '../errors.ts';
import { AGENT_MACHINE_VERSION, type AgentEvent, agentLifecycle } from './agent-lifecycle.ts';
import { pathOf } from './state-path.ts';

const AtRest = z.union([
  z.literal('idle'),
  z.strictObject({ waiting: z.enum(['delegation', 'approval', 'answer']) }),
]);
/** Up to version 5 of the machine: numbers that nothing read. */
const Counts = z.strictObject({
  turns: z.int().nonnegative(),
  steps: z.literal(0),
  tries: z.literal(0),
});
/**
 * What is persisted of an agent: the value of a state at rest. Never XState's own snapshot: restoring one revives
 * children and references from whatever JSON it holds.
 */
const SavedAgent = z.strictObject({ value: AtRest, context: Counts.optional() });

export type AgentSnapshot = SnapshotFrom<typeof agentLifecycle>;

export function newAgent(): AgentSnapshot {
  return initialTransition(agentLifecycle)[0];
}

/** Throws `internal` for an event that the state does not accept: then the effect and the machine do not belong together. */
export function nextAgent(snapshot: AgentSnapshot, event: AgentEvent): AgentSnapshot {
  if (!snapshot.can(event))
    throw new TroupeError('internal', `${event.type} is not accepted in ${pathOf(snapshot.value)}`);
  return transition(agentLifecycle, snapshot, event)[0];
}

/** Of a machine at rest; in the middle of a turn the pinned turn says what to do. */
export function saveAgent({ value }: AgentSnapshot): string {
  return JSON.stringify({ value });
}

/** Whether a turn may begin: the machine rests. */
export function isReady(snapshot: AgentSnapshot): boolean {
  return snapshot.matches('idle') || snapshot.matches('waiting');
}

/** Throws `actor_corrupt`; a snapshot of a newer machine is refused too, and left as it is. */
export function restoreAgent(saved: string | null, version: number): AgentSnapshot {
  if (saved === null) return newAgent();
  if (version > AGENT_MACHINE_VERSION) {
    throw new TroupeError(
      'actor_newer',
      `the snapshot was written by machine version ${version}; this process knows ${AGENT_MACHINE_VERSION}. Upgrade it.`,
      { version, supported: AGENT_MACHINE_VERSION },
    );
  }
  const parsed = SavedAgent.safeParse(parseJson(saved));
  if (!parsed.success) {
    throw new TroupeError('actor_corrupt', `the snapshot cannot be read: ${z.prettifyError(parsed.error)}`);
  }
  return agentLifecycle.resolveState({ value: parsed.data.value });
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // refused by the schema, with its own message
  }
}
