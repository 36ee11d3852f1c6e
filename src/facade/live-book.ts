import {
  type ActivityNote,
  type ActorAddress,
  addressKey,
  type LiveNote,
  type LivePlace,
  type StateNote,
  type StreamDelta,
} from '../events/index.ts';

/** Longest text of a round that is kept, in characters: its end. */
const MAX_TEXT = 262_144;
/** Most calls of a turn that are kept: the newest. */
const MAX_CALLS = 32;

type Arguments = ActivityNote & { kind: 'arguments' };

/**
 * What the running turns of this process have told so far, for readers that come in the middle.
 *  K1  Only the present attempt of a turn is kept, and of its texts only those of the present round.
 *  K2  It is bounded, and empty when no turn runs.
 */
export interface LiveBook {
  note(note: LiveNote): void;
  /** The running turns of a conversation, told again: their states, texts and calls so far, each text from its beginning. */
  of(conversation: Omit<ActorAddress, 'agent'>): LiveNote[];
}

interface Turn {
  place: LivePlace;
  state: StateNote | null;
  text: StreamDelta | null;
  reasoning: (ActivityNote & { kind: 'reasoning' }) | null;
  calls: Map<string, Call>;
}

interface Call {
  step: number;
  round: number;
  written: Arguments | null;
  /** Its start, its latest progress and its result, by kind. */
  told: Map<ActivityNote['kind'], ActivityNote>;
}

export function createLiveBook(): LiveBook {
  const turns = new Map<string, Turn>();

  function turnAt(place: LivePlace): Turn {
    const key = addressKey(place.address);
    const known = turns.get(key);
    const isSame = known?.place.turn === place.turn && known.place.attempt === place.attempt;
    const turn = isSame ? known : newTurn(place);
    if (turn.place.round !== place.round || turn.place.step !== place.step) forgetRound(turn);
    turn.place = place;
    turns.set(key, turn);
    return turn;
  }

  function state(note: StateNote): void {
    const turn = turns.get(addressKey(note.address));
    if (!turn) return;
    if (note.event === 'COMMITTED' || note.turn !== turn.place.turn) turns.delete(addressKey(note.address));
    else turn.state = note;
  }

  return {
    note(note) {
      if (note.type === 'state') return state(note.state);
      if (note.type === 'delta') {
        const turn = turnAt(note.delta);
        turn.text = longer(turn.text, note.delta);
        return;
      }
      const { activity } = note;
      if (activity.kind === 'void' && activity.all) return void turns.delete(addressKey(activity.address));
      record(turnAt(activity), activity);
    },
    of({ tenant, conversation }) {
      const found = [...turns.values()].filter(({ place: { address } }) => {
        return address.tenant === tenant && address.conversation === conversation;
      });
      return found.flatMap(toldAgain);
    },
  };
}

function newTurn(place: LivePlace): Turn {
  return { place, state: null, text: null, reasoning: null, calls: new Map() };
}

function forgetRound(turn: Turn): void {
  turn.text = null;
  turn.reasoning = null;
}

function record(turn: Turn, activity: ActivityNote): void {
  switch (activity.kind) {
    case 'reasoning':
      turn.reasoning = longer(turn.reasoning, activity);
      return;
    case 'void':
      forgetRound(turn);
      for (const [id, { round, told }] of turn.calls)
        if (round === activity.round && told.size === 0) turn.calls.delete(id);
      return;
    case 'arguments': {
      const call = callOf(turn, activity);
      call.written = longer(call.written, activity);
      return;
    }
    case 'called':
    case 'progress':
    case 'result':
      callOf(turn, activity).told.set(activity.kind, activity);
  }
}

function callOf({ calls }: Turn, { call, step, round }: ActivityNote & { call: string }): Call {
  const known = calls.get(call);
  if (known) return known;
  const added: Call = { step, round, written: null, told: new Map() };
  calls.set(call, added);
  const [oldest] = calls.keys();
  if (calls.size > MAX_CALLS && oldest !== undefined) calls.delete(oldest);
  return added;
}

/** The text with its next piece. Of one that is too long its beginning is dropped. */
function longer<P extends { index: number; text: string }>(known: P | null, piece: P): P {
  if (known === null || piece.index === 0) return piece;
  const text = known.text + piece.text;
  const dropped = Math.max(0, text.length - MAX_TEXT);
  return { ...piece, index: known.index + dropped, text: text.slice(dropped) };
}

function toldAgain({ state, text, reasoning, calls, place }: Turn): LiveNote[] {
  const callsOf = (isNow: boolean) =>
    [...calls.values()]
      .filter(({ step }) => step >= place.step === isNow)
      .flatMap(({ written, told }) => [...(written ? [written] : []), ...told.values()])
      .map(asNote);
  return [
    ...(state ? [{ type: 'state' as const, state }] : []),
    ...callsOf(false),
    ...(reasoning ? [asNote(reasoning)] : []),
    ...(text ? [{ type: 'delta' as const, delta: text }] : []),
    ...callsOf(true),
  ];
}

function asNote(activity: ActivityNote): LiveNote {
  return { type: 'activity', activity };
}
