import type {
  AgentId,
  ArgumentsNote,
  CallNote,
  LiveNote,
  LivePlace,
  ReasoningNote,
  TextNote,
  VoidNote,
} from '../../events/index.ts';
import { keyOfCall } from '../../events/index.ts';

type PieceNote = TextNote | ReasoningNote | ArgumentsNote;

/** What a reader was told of the running turn of one agent. */
interface Heard {
  place: LivePlace;
  /** The next position of each text of the round. */
  next: Map<string, number>;
  /** Types of notes that came, by call. */
  calls: Map<string, Set<CallNote['type']>>;
  /** Notes that wait for what is told again. 0: nothing is missing. */
  held: number;
}

/** What is missing is asked for again after so many further notes: the request or its answer may have been lost. */
const ASK_AFTER = 50;

/**
 * Makes of the notes that reach a reader, some late, lost or told again, each text once and in order.
 *  G1  A piece that continues the text passes; of one that overlaps, the rest; of one ahead nothing, and `recall` asks for
 *      the running turns from their beginning.
 *  G2  Texts begin anew with each round, and notes of an earlier attempt are dropped.
 *  G3  The start of a call and its result pass once. In the middle of a turn they wait for what is told again, so that a
 *      reader gets first what came before.
 */
export class LiveGate {
  readonly #byAgent = new Map<AgentId, Heard>();
  readonly #pass: (note: LiveNote) => void;
  readonly #recall: () => void;

  constructor(pass: (note: LiveNote) => void, recall: () => void) {
    this.#pass = pass;
    this.#recall = recall;
  }

  take(note: LiveNote): void {
    this.#take(note, false);
  }

  /** Takes notes that tell the running turns from their beginning. */
  takeAgain(notes: readonly LiveNote[]): void {
    for (const note of notes) this.#take(note, true);
    for (const { agent } of notes) {
      const heard = this.#byAgent.get(agent);
      if (heard) heard.held = 0;
    }
  }

  #take(note: LiveNote, isAgain: boolean): void {
    switch (note.type) {
      case 'state':
        if (!isAgain || !this.#byAgent.has(note.agent)) this.#pass(note);
        return;
      case 'text':
      case 'reasoning':
      case 'arguments':
        return this.#takePiece(note, isAgain);
      case 'called':
      case 'progress':
      case 'result':
        return this.#takeCall(note, isAgain);
      case 'dropped':
        // Of a call of which the reader was told.
        if (this.#heardAt(note)?.next.delete(keyOfCall(note))) this.#pass(note);
        return;
      case 'void':
        return this.#takeVoid(note);
    }
  }

  /** Null: a later attempt is known. */
  #heardAt(place: LivePlace): Heard | null {
    const { agent } = place;
    const known = this.#byAgent.get(agent);
    if (known?.place.turn !== place.turn || known.place.attempt < place.attempt) {
      const heard = { place, next: new Map(), calls: new Map(), held: 0 };
      this.#byAgent.set(agent, heard);
      return heard;
    }
    if (known.place.attempt > place.attempt) return null;
    return known;
  }

  /** Texts of an earlier round are over. */
  #enterRound(heard: Heard, place: LivePlace): void {
    if (heard.place.round === place.round && heard.place.step === place.step) return;
    heard.place = place;
    heard.next.clear();
    heard.held = 0;
  }

  /** Holds a note back, which is told again. */
  #hold(heard: Heard): void {
    heard.held += 1;
    if (heard.held % ASK_AFTER === 1) this.#recall();
  }

  /** Passes what of a piece continues its text. */
  #takePiece(note: PieceNote, isAgain: boolean): void {
    const heard = this.#heardAt(note);
    if (!heard) return;
    const key = note.type === 'arguments' ? keyOfCall(note) : note.type;
    const isEarly = isEarlier(heard.place, note);
    // Of earlier steps only calls are told again, to readers that do not know them.
    if (isEarly && (!isAgain || note.type !== 'arguments' || heard.calls.has(key))) return;
    if (!isEarly) this.#enterRound(heard, note);
    const next = heard.next.get(key);
    const from = next ?? (isAgain ? note.index : 0);
    if (note.index > from && !isAgain) return this.#hold(heard);
    const end = note.index + note.text.length;
    if (next !== undefined && end <= next) return;
    heard.next.set(key, end);
    const known = Math.max(0, from - note.index);
    this.#pass(known === 0 ? note : { ...note, index: from, text: note.text.slice(known) });
  }

  #takeCall(note: CallNote, isAgain: boolean): void {
    const known = this.#byAgent.get(note.agent);
    const heard = this.#heardAt(note);
    if (!heard) return;
    // The middle of a turn: what is told again has this too.
    if ((heard !== known || heard.held > 0) && !isAgain) return this.#hold(heard);
    const key = keyOfCall(note);
    const types = heard.calls.get(key) ?? new Set();
    heard.calls.set(key, types);
    const isRepeated = types.has(note.type) && (isAgain || note.type !== 'progress');
    const isKnown = types.has('result') || isRepeated;
    types.add(note.type);
    if (!isKnown) this.#pass(note);
  }

  #takeVoid(note: VoidNote): void {
    const heard = this.#heardAt(note);
    if (!heard) return;
    if (note.all) this.#byAgent.delete(note.agent);
    else if (!isEarlier(heard.place, note)) heard.next.clear();
    this.#pass(note);
  }
}

function isEarlier(known: LivePlace, place: LivePlace): boolean {
  return place.step < known.step || (place.step === known.step && place.round < known.round);
}
