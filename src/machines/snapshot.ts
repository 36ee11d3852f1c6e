import type { SnapshotFrom } from 'xstate';
import * as z from 'zod';
import { TroupeError } from '../errors.ts';
import { AGENT_MACHINE_VERSION, agentLifecycle, type WaitsFor } from './agent-lifecycle.ts';

/**
 * What is persisted of an agent: state value and three numbers. Never XState's own snapshot: restoring one revives
 * children and references from whatever JSON it holds.
 */
const SavedAgent = z.strictObject({
  value: z.union([
    z.enum(['idle', 'paused', 'failed', 'retired']),
    z.strictObject({ waiting: z.enum(['delegation', 'approval', 'answer']) }),
  ]),
  context: z.strictObject({
    turns: z.int().nonnegative(),
    steps: z.literal(0),
    tries: z.literal(0),
  }),
});

export type AgentSnapshot = SnapshotFrom<typeof agentLifecycle>;

/** The snapshot after one more settled turn; at rest it depends on nothing else (M3). */
export function saveSettled({ context }: AgentSnapshot, waits: WaitsFor | null): string {
  return savedAfter(context.turns + 1, waits);
}

/** That of an agent which has settled so many turns. */
export function savedAfter(turns: number, waits: WaitsFor | null = null): string {
  const value = waits === null ? 'idle' : { waiting: waits };
  return JSON.stringify({ value, context: { turns, steps: 0, tries: 0 } });
}

/** Whether a turn may begin: the machine rests and nothing keeps it there. */
export function isReady(snapshot: AgentSnapshot): boolean {
  return snapshot.matches('idle') || snapshot.matches('waiting');
}

/** Throws `actor_corrupt`; a snapshot of a newer machine is refused too, and left as it is. */
export function restoreAgent(saved: string | null, version: number): AgentSnapshot {
  if (saved === null)
    return agentLifecycle.resolveState({ value: 'idle', context: { turns: 0, steps: 0, tries: 0 } });
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
  return agentLifecycle.resolveState(parsed.data);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // refused by the schema, with its own message
  }
}
