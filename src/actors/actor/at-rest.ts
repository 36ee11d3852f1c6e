import { TroupeError } from '../../base/errors.ts';
import {
  type ActorAddress,
  type StateNote,
  type ActorRecord,
  type AgentId,
  type EventDraft,
  parseTurnId,
  turnOfRuntimeId,
} from '../../events/index.ts';
import {
  type Availability,
  availabilityOf,
  type AvailabilityEvent,
  unavailabilityIn,
} from '../../machines/availability-fold.ts';
import { nextAvailability } from '../../machines/availability.ts';
import type { EngineDeps } from './engine-deps.ts';
import type { ActorPatch, ConversationKey } from '../../store/store.ts';

/** Result of an event of the availability machine. A refused event changes nothing. */
type AvailabilityChange = { kind: 'changed'; state: Availability } | { kind: 'refused'; state: Availability };

/**
 * Sends an event to the availability machine of an agent and stores the next state. Each write requires the state from which
 * it was computed, so of two concurrent events the second applies to the result of the first.
 */
export async function changeAvailability(
  { store }: Pick<EngineDeps, 'store'>,
  address: ActorAddress,
  event: AvailabilityEvent,
): Promise<AvailabilityChange> {
  for (;;) {
    const from = await readAvailability(store, address);
    const state = nextAvailability(from === 'unreadable' ? unreadableFor(event) : from, event);
    if (state === null) return { kind: 'refused', state: from === 'unreadable' ? 'failed' : from };
    const expected = from === 'unreadable' ? undefined : unavailabilityIn(from);
    if (await store.park(address, unavailabilityIn(state), expected)) return { kind: 'changed', state };
  }
}

async function readAvailability(
  store: EngineDeps['store'],
  address: ActorAddress,
): Promise<Availability | 'unreadable'> {
  try {
    return availabilityOf((await store.readActor(address))?.parked ?? null);
  } catch (error) {
    if (error instanceof TroupeError && error.code === 'actor_corrupt') return 'unreadable';
    throw error;
  }
}

/** Availability of an agent with an unreadable record: failed, except for the event that makes it fail. */
function unreadableFor({ type }: AvailabilityEvent): Availability {
  return type === 'BREAK' ? 'available' : 'failed';
}

type Publisher = Pick<EngineDeps, 'clock' | 'registry' | 'onLive' | 'onWarning'>;

export function publishAvailability(
  deps: Publisher,
  { tenant, conversation, agent }: ActorAddress,
  event: AvailabilityEvent['type'],
  state: string,
): void {
  const address = { tenant, conversation, agent };
  const at = deps.clock.now();
  const live = deps.registry.find(address);
  if (live) live.last = { event, at };
  publish(deps, { type: 'state', ...address, turn: null, state, event, at, doing: [] });
}

/** Calls the watcher. Does not wait for it; its errors become warnings. */
export function publish({ onLive, onWarning }: Publisher, note: StateNote): void {
  try {
    onLive?.(note);
  } catch (error) {
    onWarning(error, 'state watcher');
  }
}

/** Pause before an agent whose lease another process holds is checked again, ms. */
const PAUSE_MS = 20;

/** Waits until no process works on the agent, then writes the patch that `patchOf` returns. A null patch writes nothing. */
export async function patchAtRest(
  deps: EngineDeps,
  address: ActorAddress,
  patchOf: (held: ActorRecord | null) => ActorPatch | null,
): Promise<void> {
  const { store, clock, registry } = deps;
  for (;;) {
    const held = await store.readActor(address);
    if (patchOf(held) === null) return;
    const acquired = await store.acquire(address, leaseOn(deps, held), deps.log.published);
    if (acquired.kind === 'acquired') {
      registry.drop(address);
      const patch = patchOf(acquired.record) ?? {};
      if (await store.update(acquired.record, { owner: '', until: 0, ...patch })) return;
    }
    await clock.sleep(PAUSE_MS);
  }
}

/** The lease to take. In a data directory with one owner, leases of earlier processes count as free. */
function leaseOn(
  { process, clock, limits }: EngineDeps,
  held: { owner: string; until: number } | null,
): { owner: string; now: number; until: number } {
  const owner = importOwner(process);
  const now = clock.now();
  const isDead = limits.soleOwner && held !== null && held.owner !== owner;
  return { owner, now: isDead ? Math.max(now, held.until + 1) : now, until: now + limits.leaseMs };
}

/** Progress of the agents in an imported conversation. */
export interface ImportedProgress {
  /** Number of the last turn of each addressed agent. */
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

export function importOwner(process: string): string {
  return `${process}:import`;
}

/**
 * Appends imported events while holding the leases of the agents that they address, then marks the log as processed by these
 * agents up to the new head. The messages of a transcript are already answered, so no sweep may find them as open meanwhile.
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
    for (const [agent, turns] of presentAgents(deps, progress)) {
      leases.push({ record: await holdIdle(deps, { ...log, agent }), turns });
    }
    begun = true;
    await append();
  } finally {
    // Done even if the append failed, because the events that it wrote count as answered too.
    const head = begun ? await deps.store.head(log) : null;
    for (const { record, turns } of leases) {
      deps.registry.drop(record);
      const settled = head !== null && { processed: head, state: { turnNo: Math.max(record.turnNo, turns) } };
      await deps.store.update(record, { owner: '', until: 0, ...settled });
    }
  }
}

function presentAgents(
  { agents: { former } }: EngineDeps,
  { agents }: ImportedProgress,
): ImportedProgress['agents'] {
  if (!former) return agents;
  const present = newProgress();
  for (const [agent, turns] of agents) raise(present, former.get(agent) ?? agent, turns);
  return present.agents;
}

async function holdIdle(deps: EngineDeps, address: ActorAddress): Promise<ActorRecord> {
  const now = deps.clock.now();
  const lease = { owner: importOwner(deps.process), now, until: now + deps.limits.leaseMs };
  const acquired = await deps.store.acquire(address, lease, deps.log.published);
  // A pinned turn that a crash left would end after the imported events, as if it had answered them.
  if (acquired.kind === 'acquired' && acquired.record.turn === null) return acquired.record;
  if (acquired.kind === 'acquired') await deps.store.update(acquired.record, { owner: '', until: 0 });
  const { agent, conversation } = address;
  throw new TroupeError(
    'import_invalid',
    `@${agent} is working in ${conversation}; import into another conversation`,
    { conversation },
  );
}
