import {
  type ActivityNote,
  type ActorAddress,
  addressKey,
  type LiveNote,
  type LivePlace,
  type StateNote,
  type StreamDelta,
  type TurnId,
} from '../events/index.ts';

/** Longest text of a round that is told again, in characters: its end. */
const MAX_TEXT = 262_144;
/** A text is cut when it is this long, and not with each piece: cutting copies it. */
const CUT_AT = 2 * MAX_TEXT;
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
  address: ActorAddress;
  id: TurnId;
  /** Where it last told something. Null: so far only its states are known. */
  place: LivePlace | null;
  state: StateNote | null;
  text: StreamDelta | null;
  reasoning: (ActivityNote & { kind: 'reasoning' }) | null;
  /** By step and id: some servers count their ids anew in each answer. */
  calls: Map<string, Call>;
}

interface Call {
  step: number;
  round: number;
  /** Its arguments so far, until it runs: its start has them. */
  written: Arguments | null;
  /** Its start, its latest progress and its result, by kind. */
  told: Map<ActivityNote['kind'], ActivityNote>;
}

export function createLiveBook(): LiveBook {
  const turns = new Map<string, Turn>();

  function turnOf(address: ActorAddress, id: TurnId): Turn {
    const key = addressKey(address);
    const known = turns.get(key);
    if (known?.id === id) return known;
    const turn: Turn = {
      address,
      id,
      place: null,
      state: null,
      text: null,
      reasoning: null,
      calls: new Map(),
    };
    turns.set(key, turn);
    return turn;
  }

  /** Null: a later attempt is known. */
  function turnAt(place: LivePlace): Turn | null {
    const turn = turnOf(place.address, place.turn);
    const before = turn.place ?? place;
    if (before.attempt > place.attempt) return null;
    if (before.attempt < place.attempt) turn.calls.clear();
    if (before.attempt < place.attempt || before.step !== place.step || before.round !== place.round)
      forgetRound(turn);
    turn.place = place;
    return turn;
  }

  /** A running turn goes on when its agent is paused or retired: that note names no turn. */
  function state(note: StateNote): void {
    if (note.turn === null) return;
    if (note.event === 'COMMITTED') turns.delete(addressKey(note.address));
    else turnOf(note.address, note.turn).state = note;
  }

  return {
    note(note) {
      if (note.type === 'state') return state(note.state);
      const turn = turnAt(note.type === 'delta' ? note.delta : note.activity);
      if (!turn) return;
      if (note.type === 'delta') turn.text = longer(turn.text, note.delta);
      else if (note.activity.kind === 'void' && note.activity.all) turns.delete(addressKey(turn.address));
      else record(turn, note.activity);
    },
    of({ tenant, conversation }) {
      const found = [...turns.values()].filter(
        ({ address }) => address.tenant === tenant && address.conversation === conversation,
      );
      return found.flatMap(toldAgain);
    },
  };
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
      for (const [key, { round, told }] of turn.calls)
        if (round === activity.round && told.size === 0) turn.calls.delete(key);
      return;
    case 'arguments': {
      const call = callOf(turn, activity);
      call.written = longer(call.written, activity);
      return;
    }
    case 'dropped':
      turn.calls.delete(callKey(activity));
      return;
    case 'called':
    case 'progress':
    case 'result': {
      const call = callOf(turn, activity);
      call.told.set(activity.kind, activity);
      if (activity.kind === 'called') call.written = null;
    }
  }
}

function callKey({ step, call }: ActivityNote & { call: string }): string {
  return `${step} ${call}`;
}

function callOf({ calls }: Turn, activity: ActivityNote & { call: string }): Call {
  const { step, round } = activity;
  const key = callKey(activity);
  const known = calls.get(key);
  if (known) return known;
  const added: Call = { step, round, written: null, told: new Map() };
  calls.set(key, added);
  const [oldest] = calls.keys();
  if (calls.size > MAX_CALLS && oldest !== undefined) calls.delete(oldest);
  return added;
}

type Text = { index: number; text: string };

/** The text with its next piece. Of one that is too long its beginning is dropped. */
function longer<P extends Text>(known: P | null, piece: P): P {
  if (known === null || piece.index === 0) return piece;
  const whole = { ...piece, index: known.index, text: known.text + piece.text };
  return whole.text.length < CUT_AT ? whole : endOf(whole);
}

function endOf<P extends Text>(piece: P): P {
  const dropped = Math.max(0, piece.text.length - MAX_TEXT);
  return { ...piece, index: piece.index + dropped, text: piece.text.slice(dropped) };
}

function toldAgain({ state, text, reasoning, calls, place }: Turn): LiveNote[] {
  const callsOf = (isNow: boolean) =>
    [...calls.values()]
      .filter(({ step }) => step >= (place?.step ?? 0) === isNow)
      .flatMap(({ written, told }) => [...(written ? [written] : []), ...told.values()])
      .map(asNote);
  return [
    ...(state ? [{ type: 'state' as const, state }] : []),
    ...callsOf(false),
    ...(reasoning ? [asNote(reasoning)] : []),
    ...(text ? [{ type: 'delta' as const, delta: endOf(text) }] : []),
    ...callsOf(true),
  ];
}

function asNote(activity: ActivityNote): LiveNote {
  return { type: 'activity', activity };
}
