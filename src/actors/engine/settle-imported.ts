import { TroupeError } from '../../base/errors.ts';
import {
  type ActorAddress,
  type ActorRecord,
  type AgentId,
  type EventDraft,
  parseTurnId,
  turnOfRuntimeId,
} from '../../events/index.ts';
import type { ConversationKey } from '../../store/store.ts';
import type { EngineDeps } from './engine-deps.ts';

/** Progress of the agents in an imported conversation. */
export interface ImportedProgress {
  /** Addressed agents, with the number of their last turn. */
  agents: Map<AgentId, number>;
}

export function newProgress(): ImportedProgress {
  return { agents: new Map() };
}

/** Records the agents that a draft addresses, and turn numbers that this conversation must not use again. */
export function noteProgress(
  progress: ImportedProgress,
  { conversation }: ConversationKey,
  draft: EventDraft,
): void {
  for (const agent of draft.to) raise(progress, agent, 0);
  for (const name of [draft.turn, turnOfRuntimeId(draft.id, conversation)]) {
    const turn = name ? parseTurnId(name) : null;
    if (turn?.conversation === conversation) raise(progress, turn.agent, turn.number);
  }
}

function raise({ agents }: ImportedProgress, agent: AgentId, turns: number): void {
  agents.set(agent, Math.max(agents.get(agent) ?? 0, turns));
}

/** Lease holder name of imports. */
export function importOwner(process: string): string {
  return `${process}:import`;
}

/**
 * Appends imported events while holding the leases of the agents they address, and settles those agents up to the new
 * head: the messages of a transcript are already answered, and no sweep may find them open meanwhile.
 */
export async function appendSettled(
  deps: EngineDeps,
  log: ConversationKey,
  progress: ImportedProgress,
  append: () => Promise<unknown>,
): Promise<void> {
  const leases: { record: ActorRecord; turns: number }[] = [];
  let begun = false;
  try {
    for (const [agent, turns] of progress.agents) {
      leases.push({ record: await holdIdle(deps, { ...log, agent }), turns });
    }
    begun = true;
    await append();
  } finally {
    // Also if the append failed: the events that it did write count as answered too.
    const head = begun ? await deps.store.head(log) : null;
    for (const { record, turns } of leases) {
      deps.registry.drop(record);
      const settled = head !== null && { processed: head, state: { turnNo: Math.max(record.turnNo, turns) } };
      await deps.store.update(record, { owner: '', until: 0, ...settled });
    }
  }
}

async function holdIdle(deps: EngineDeps, address: ActorAddress): Promise<ActorRecord> {
  const now = deps.clock.now();
  const lease = { owner: importOwner(deps.process), now, until: now + deps.limits.leaseMs };
  const acquired = await deps.store.acquire(address, lease, deps.log.published);
  // A pinned turn left by a crash would end after the imported events and answer them.
  if (acquired.kind === 'acquired' && acquired.record.turn === null) return acquired.record;
  if (acquired.kind === 'acquired') await deps.store.update(acquired.record, { owner: '', until: 0 });
  const { agent, conversation } = address;
  throw new TroupeError(
    'import_invalid',
    `@${agent} is working in ${conversation}; import into another conversation`,
    { conversation },
  );
}
