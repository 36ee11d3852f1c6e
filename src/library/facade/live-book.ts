import {
  type ActorAddress,
  addressKey,
  type ArgumentsNote,
  type CalledNote,
  type CallNote,
  keyOfCall,
  type LiveNote,
  type LivePlace,
  type ProgressNote,
  type ReasoningNote,
  type ResultNote,
  type StateNote,
  type TextNote,
  type TurnId,
  type TurnNote,
} from '../../events/index.ts';
import type { Doing } from '../inspect/stuck-reasons.ts';

/** Longest text of a round that is told again, in characters: its end. */
const MAX_TEXT = 262_144;
/** A text is cut when it is this long, and not with each piece: cutting copies it. */
const CUT_AT = 2 * MAX_TEXT;
/** Most calls of a turn that are kept: the newest. */
const MAX_CALLS = 32;
/** Most turns that are kept: those whose states changed last. */
const MOST_TURNS = 10_000;

/** A running turn of any process and tenant, as far as its notes have told. */
export interface HeardTurn {
  address: ActorAddress;
  turn: TurnId;
  since: number;
  doing: Doing;
}

/**
 * What running turns have told. Notes may be lost and processes killed: whoever reads what the turns of other processes do
 * compares them with their records.
 *  K1  Only the present attempt of a turn is kept, and of its texts only those of the present round.
 *  K2  It is bounded, and empty when no turn runs.
 *  K3  Of turns of other processes only the last state is kept, and when they said something: those remember them.
 */
interface LiveBook {
  /** A note of a turn of this process. */
  note(note: LiveNote): void;
  /** A note of another process. */
  hear(note: LiveNote): void;
  /** The turns of this process in a conversation, told again: their states, texts and calls so far, each text from its beginning. */
  of(conversation: Omit<ActorAddress, 'agent'>): LiveNote[];
  /** What the turns of all processes do. */
  running(): HeardTurn[];
}

interface Turn {
  address: ActorAddress;
  id: TurnId;
  /** Null: no state of it is known. */
  state: StateNote | null;
  /** Time of its first known state. */
  since: number;
  /** When something of it was told since its state changed. */
  lastWord: number | null;
  /** Null: it has told nothing in this process but states. */
  told: Telling | null;
  isOwn: boolean;
}

/** What a turn has told. */
interface Telling {
  /** Where it last told something. */
  place: LivePlace;
  text: TextNote | null;
  reasoning: ReasoningNote | null;
  calls: Map<string, Call>;
}

interface Call {
  step: number;
  round: number;
  /** Its arguments so far, until it runs: its start has them. */
  written: ArgumentsNote | null;
  /** Its start, its latest progress and its result, by type. */
  told: Map<string, CalledNote | ProgressNote | ResultNote>;
}

export function createLiveBook(now: () => number = Date.now): LiveBook {
  const turns = new Map<string, Turn>();

  function turnOf(key: string, id: TurnId, { tenant, conversation, agent }: LiveNote): Turn {
    const known = turns.get(key);
    if (known?.id === id) return known;
    const address = { tenant, conversation, agent };
    const turn = { address, id, state: null, since: 0, lastWord: null, told: null, isOwn: false };
    turns.set(key, turn);
    return turn;
  }

  /** A running turn goes on when its agent is paused or retired: that note names no turn. */
  function change(note: StateNote, isOwn: boolean): void {
    if (note.turn === null) return;
    const key = addressKey(note);
    const turn = turnOf(key, note.turn, note);
    turns.delete(key);
    if (note.event === 'COMMITTED') return;
    if (turn.state === null) turn.since = note.at;
    turn.state = note;
    turn.lastWord = null;
    turn.isOwn ||= isOwn;
    turns.set(key, turn);
    const [oldest] = turns.keys();
    if (turns.size > MOST_TURNS && oldest !== undefined) turns.delete(oldest);
  }

  return {
    note(note) {
      if (note.type === 'state') return change(note, true);
      const key = addressKey(note);
      const turn = turnOf(key, note.turn, note);
      turn.isOwn = true;
      if (note.type !== 'void') turn.lastWord = now();
      if ((turn.told?.place.attempt ?? 0) > note.attempt) return;
      if (note.type === 'void' && note.all) turns.delete(key);
      else record(tellingAt(turn, note), note);
    },
    hear(note) {
      if (note.type === 'state') return change(note, false);
      const key = addressKey(note);
      const turn = turns.get(key);
      if (turn?.id !== note.turn) return;
      if (note.type !== 'void') turn.lastWord = now();
      else if (note.all && !turn.isOwn) turns.delete(key);
    },
    of({ tenant, conversation }) {
      const found = [...turns.values()].filter(
        ({ address, isOwn }) => isOwn && address.tenant === tenant && address.conversation === conversation,
      );
      return found.flatMap(toldAgain);
    },
    running: () => [...turns.values()].flatMap(heardIn),
  };
}

function heardIn({ address, id: turn, since, state, lastWord }: Turn): HeardTurn[] {
  return state ? [{ address, turn, since, doing: doingOf(state, lastWord) }] : [];
}

function doingOf({ state, at: since, doing: names, waits }: StateNote, lastWord: number | null): Doing {
  if (waits) return { kind: 'backoff', since: waits.since, until: waits.next, code: waits.code };
  if (state === 'working.streaming') return { kind: 'model', since, lastWord };
  return state === 'working.acting' ? { kind: 'tools', since, names } : { kind: 'runtime', since };
}

/** What of a turn still counts when it tells something here. */
function tellingAt(turn: Turn, place: LivePlace): Telling {
  const told = (turn.told ??= { place, text: null, reasoning: null, calls: new Map() });
  const before = told.place;
  const isAnew = before.attempt < place.attempt;
  if (isAnew) told.calls.clear();
  if (isAnew || before.step !== place.step || before.round !== place.round) forgetRound(told);
  told.place = place;
  return told;
}

function forgetRound(told: Telling): void {
  told.text = null;
  told.reasoning = null;
}

function record(told: Telling, note: TurnNote): void {
  switch (note.type) {
    case 'text':
      told.text = longer(told.text, note);
      return;
    case 'reasoning':
      told.reasoning = longer(told.reasoning, note);
      return;
    case 'arguments': {
      const call = callOf(told, note);
      call.written = longer(call.written, note);
      return;
    }
    case 'dropped':
      told.calls.delete(keyOfCall(note));
      return;
    case 'called':
    case 'progress':
    case 'result': {
      const call = callOf(told, note);
      call.told.set(note.type, note);
      if (note.type === 'called') call.written = null;
      return;
    }
    case 'void':
      forgetRound(told);
      for (const [key, call] of told.calls)
        if (call.round === note.round && call.told.size === 0) told.calls.delete(key);
  }
}

function callOf({ calls }: Telling, note: CallNote): Call {
  const { step, round } = note;
  const key = keyOfCall(note);
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

function toldAgain({ state, told }: Turn): LiveNote[] {
  const states = state ? [state] : [];
  if (!told) return states;
  const { text, reasoning, calls, place } = told;
  const callsOf = (isNow: boolean) =>
    [...calls.values()]
      .filter(({ step }) => step >= place.step === isNow)
      .flatMap((call) => [...(call.written ? [call.written] : []), ...call.told.values()]);
  return [
    ...states,
    ...callsOf(false),
    ...(reasoning ? [reasoning] : []),
    ...(text ? [endOf(text)] : []),
    ...callsOf(true),
  ];
}
