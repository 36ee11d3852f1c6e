import { type ActivityNote, addressOf, type LiveNote, type LivePlace } from '../events/index.ts';

/** Keys of the texts of a round, beside the arguments of its calls. */
const TEXT = 'text';
const REASONING = 'reasoning';

/** What a reader was told of the running turn of one agent. */
interface Heard {
  place: LivePlace;
  /** The next position of each text of the round. */
  next: Map<string, number>;
  /** Kinds of notes that came, by step and call: some servers count the ids of calls anew in each answer. */
  calls: Map<string, Set<ActivityNote['kind']>>;
  /** Notes that wait for what is told again. 0: nothing is missing. */
  held: number;
}

/** What is missing is asked for again after so many further notes: the request or its answer may have been lost. */
const ASK_AFTER = 50;

type Piece = LivePlace & { index: number; text: string };

/**
 * Makes of the notes that reach a reader, some late, lost or told again, each text once and in order.
 *  G1  A piece that continues the text passes; of one that overlaps, the rest; of one ahead nothing, and `recall` asks for
 *      the running turns from their beginning.
 *  G2  Texts begin anew with each round, and notes of an earlier attempt are dropped.
 *  G3  The start of a call and its result pass once. In the middle of a turn they wait for what is told again, so that a
 *      reader gets first what came before.
 */
export class LiveGate {
  readonly #byAgent = new Map<string, Heard>();
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
    for (const { agent } of notes.map(addressOf)) {
      const heard = this.#byAgent.get(agent);
      if (heard) heard.held = 0;
    }
  }

  /** Null: a later attempt is known. */
  #heardAt(place: LivePlace): Heard | null {
    const { agent } = place.address;
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

  #restOf(heard: Heard, key: string, piece: Piece, isAgain: boolean): { index: number; text: string } | null {
    const next = heard.next.get(key);
    const from = next ?? (isAgain ? piece.index : 0);
    const end = piece.index + piece.text.length;
    if (piece.index > from && !isAgain) {
      this.#hold(heard);
      return null;
    }
    const index = Math.max(from, piece.index);
    if (next !== undefined && end <= next) return null;
    heard.next.set(key, end);
    return { index, text: piece.text.slice(index - piece.index) };
  }

  /** What of a piece continues its text; null if nothing does. */
  #continued<P extends Piece>(piece: P, key: string, isAgain: boolean): P | null {
    const heard = this.#heardAt(piece);
    if (!heard) return null;
    const isEarly = isEarlier(heard.place, piece);
    // Of earlier steps only calls are told again, to readers that do not know them.
    if (isEarly && (!isAgain || key === TEXT || key === REASONING || heard.calls.has(key))) return null;
    if (!isEarly) this.#enterRound(heard, piece);
    const rest = this.#restOf(heard, key, piece, isAgain);
    return rest && { ...piece, ...rest };
  }

  #passPiece(activity: ActivityNote & Piece, key: string, isAgain: boolean): void {
    const rest = this.#continued(activity, key, isAgain);
    if (rest) this.#pass({ type: 'activity', activity: rest });
  }

  #passCall(activity: ActivityNote & { call: string }, isAgain: boolean): void {
    const known = this.#byAgent.get(activity.address.agent);
    const heard = this.#heardAt(activity);
    if (!heard) return;
    // The middle of a turn: what is told again has this too.
    if ((heard !== known || heard.held > 0) && !isAgain) return this.#hold(heard);
    const key = callKey(activity);
    const kinds = heard.calls.get(key) ?? new Set();
    heard.calls.set(key, kinds);
    const isRepeated = kinds.has(activity.kind) && (isAgain || activity.kind !== 'progress');
    const isKnown = kinds.has('result') || isRepeated;
    kinds.add(activity.kind);
    if (!isKnown) this.#pass({ type: 'activity', activity });
  }

  /** Of a call of which the reader was told. */
  #passDropped(activity: ActivityNote & { call: string }): void {
    const isHeard = this.#heardAt(activity)?.next.delete(callKey(activity)) ?? false;
    if (isHeard) this.#pass({ type: 'activity', activity });
  }

  #passVoid(activity: ActivityNote & { kind: 'void' }): void {
    const heard = this.#heardAt(activity);
    if (!heard) return;
    if (activity.all) this.#byAgent.delete(activity.address.agent);
    else if (!isEarlier(heard.place, activity)) heard.next.clear();
    this.#pass({ type: 'activity', activity });
  }

  #passActivity(activity: ActivityNote, isAgain: boolean): void {
    switch (activity.kind) {
      case 'reasoning':
        return this.#passPiece(activity, REASONING, isAgain);
      case 'arguments':
        return this.#passPiece(activity, callKey(activity), isAgain);
      case 'dropped':
        return this.#passDropped(activity);
      case 'called':
      case 'progress':
      case 'result':
        return this.#passCall(activity, isAgain);
      case 'void':
        return this.#passVoid(activity);
    }
  }

  #take(note: LiveNote, isAgain: boolean): void {
    if (note.type === 'activity') return this.#passActivity(note.activity, isAgain);
    if (note.type === 'delta') {
      const delta = this.#continued(note.delta, TEXT, isAgain);
      if (delta) this.#pass({ type: 'delta', delta });
    } else if (!isAgain || !this.#byAgent.has(note.state.address.agent)) this.#pass(note);
  }
}

function callKey({ step, call }: ActivityNote & { call: string }): string {
  return `${step} ${call}`;
}

function isEarlier(known: LivePlace, place: LivePlace): boolean {
  return place.step < known.step || (place.step === known.step && place.round < known.round);
}
