import { createView, type View } from '../../context/index.ts';
import { type ActorAddress, type ActorRecord, addressKey, type TurnId } from '../../events/index.ts';
import { type AgentSnapshot, isReady, restoreAgent } from '../../machines/agent-lifecycle.ts';
import { newTaskFold, type TaskFold } from '../../machines/task-fold.ts';
import type { Lease } from './lease.ts';
import type { FrozenBaseline } from './agent-runtime.ts';
import { NOTHING_STORED, type Stored } from '../log/read-log.ts';

/**
 * A live actor of this process: the state of its machine and its view, kept in memory between turns and dropped when idle. All
 * of it may be lost at any moment and is then rebuilt from the store.
 *  G1  An entry is used only if its `lastTurn` equals that of the record. Otherwise another process has run a turn since.
 *  G2  An idle actor costs nothing: entries unused for `limits.idleMs` or beyond `capacity` are dropped, the oldest first.
 */
export interface LiveActor {
  readonly address: ActorAddress;
  /** State of its machine. Only `advance` may change it. */
  state: AgentSnapshot;
  view: View;
  /** Whether a turn is adding its inputs to the view, in slices. Until it is done, the view must not be shown. */
  isBeginning: boolean;
  /** The tasks of its conversation. */
  tasks: TaskFold;
  /** See `Folded`. */
  isStale?: boolean;
  /** The last checkpoint of `view` and `tasks`. */
  stored: Stored;
  /** The baseline of the last turn here, with its texts. */
  baseline: FrozenBaseline | null;
  lastTurn: TurnId | null;
  /** The last transition here, ms since the epoch. */
  last: Transition | null;
  /** Present while this process works on it. */
  lease: Lease | null;
  /** Its record when it began to rest. Null: the record must be read from the store. */
  resting: ActorRecord | null;
  usedAt: number;
  /** Counted tokens of a prompt for which a compaction achieved nothing. It is tried again when the prompt has grown. */
  compactionStuckAt: number | null;
}

export interface Transition {
  /** Name of the machine's event. */
  event: string;
  /** Time, ms since the epoch. */
  at: number;
}

export interface Registry {
  /** The live actor for a record, restored if necessary. Throws `actor_corrupt`. */
  enter(record: ActorRecord, now: number): LiveActor;
  find(address: ActorAddress): LiveActor | null;
  leave(actor: LiveActor, record: ActorRecord, now: number): void;
  drop(address: ActorAddress): void;
  /** Drops actors unused since `before`, ms since the epoch. Returns the number that remain. */
  trim(before: number): number;
  working(): LiveActor[];
}

const MAX_WARM = 4_096;

function isResting({ owner, turn, parked, unpublished }: ActorRecord): boolean {
  return owner === '' && turn === null && parked === null && !unpublished;
}

interface RegistryOptions {
  secretOf: (address: ActorAddress) => string;
  /** Maximum events in warm views, over all actors. */
  capacity?: number;
}

export function createRegistry(options: RegistryOptions): Registry {
  const { secretOf, capacity = 200_000 } = options;
  const actors = new Map<string, LiveActor>();

  function restore(record: ActorRecord, now: number): LiveActor {
    const { tenant, conversation, agent } = record;
    const address: ActorAddress = { tenant, conversation, agent };
    return {
      address,
      state: restoreAgent(record.snapshot, record.machineVersion),
      view: createView(agent, secretOf(address)),
      isBeginning: false,
      tasks: newTaskFold(),
      stored: NOTHING_STORED,
      baseline: null,
      lastTurn: record.lastTurn,
      last: null,
      lease: null,
      resting: null,
      usedAt: now,
      compactionStuckAt: null,
    };
  }

  function drop(address: ActorAddress): void {
    actors.delete(addressKey(address));
  }

  /** Drops the oldest actor immediately, because thousands of actors may become active between two sweeps. */
  function dropOldest(): void {
    for (const [key, actor] of actors) {
      if (actor.lease) continue;
      actors.delete(key);
      return;
    }
  }

  return {
    enter(record, now) {
      const key = addressKey(record);
      const known = actors.get(key);
      if (known && !known.isStale && known.lastTurn === record.lastTurn && isReady(known.state)) {
        actors.delete(key);
        actors.set(key, known);
        known.usedAt = now;
        return known;
      }
      if (known) drop(record);
      const actor = restore(record, now);
      actors.set(key, actor);
      if (actors.size > MAX_WARM) dropOldest();
      return actor;
    },
    find: (address) => actors.get(addressKey(address)) ?? null,
    leave(actor, record, now) {
      actor.lease = null;
      actor.lastTurn = record.lastTurn;
      actor.resting = isResting(record) ? record : null;
      actor.usedAt = now;
    },
    drop,
    trim(before) {
      let kept = 0;
      for (const [key, actor] of [...actors].reverse()) {
        const weight = actor.view.slots.length + actor.view.pending.length + 1;
        const idle = !actor.lease && (actor.usedAt < before || kept + weight > capacity);
        if (idle) actors.delete(key);
        else kept += weight;
      }
      return actors.size;
    },
    working: () => [...actors.values()].filter((actor) => actor.lease !== null),
  };
}
