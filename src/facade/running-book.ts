import {
  type ActorAddress,
  addressKey,
  type LiveNote,
  type StateNote,
  type TurnId,
} from '../events/index.ts';
import type { Doing } from '../inspect/stuck-reasons.ts';

/** A running turn of any process and tenant, as far as its notes have told. */
export interface HeardTurn {
  address: ActorAddress;
  turn: TurnId;
  since: number;
  doing: Doing;
}

/** Most turns that are kept: those heard of last. */
const MOST_TURNS = 10_000;

/**
 * What the turns of all processes do now. It is made of the notes that watchers get anyway, so it costs no write and no read,
 * and a turn pays nothing for it. Notes may be lost and processes killed: whoever reads it compares a turn with its record.
 */
export interface RunningBook {
  note(note: LiveNote): void;
  all(): HeardTurn[];
}

export function createRunningBook(now: () => number): RunningBook {
  const turns = new Map<string, HeardTurn>();

  function changeState(note: StateNote): void {
    const { address, turn, event, at } = note;
    if (turn === null) return;
    const key = addressKey(address);
    const before = turns.get(key);
    turns.delete(key);
    if (event === 'COMMITTED') return;
    const since = before?.turn === turn ? before.since : at;
    turns.set(key, { address, turn, since, doing: doingOf(note) });
    const [oldest] = turns.keys();
    if (turns.size > MOST_TURNS && oldest !== undefined) turns.delete(oldest);
  }

  return {
    note(note) {
      if (note.type === 'state') return changeState(note.state);
      const place = note.type === 'delta' ? note.delta : note.activity;
      const key = addressKey(place.address);
      const known = turns.get(key);
      if (known?.turn !== place.turn) return;
      if (note.type === 'activity' && note.activity.kind === 'void') {
        if (note.activity.all) turns.delete(key);
      } else if (known.doing.kind === 'model') known.doing.lastWord = now();
    },
    all: () => [...turns.values()],
  };
}

function doingOf({ state, at, doing, waits }: StateNote): Doing {
  if (waits) return { kind: 'backoff', since: waits.since, until: waits.next, code: waits.code };
  if (state === 'working.streaming') return { kind: 'model', since: at, lastWord: null };
  return state === 'working.acting'
    ? { kind: 'tools', since: at, names: doing }
    : { kind: 'runtime', since: at };
}
