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
  type ConversationId,
  type TenantId,
  type AgentId,
  type VoidNote,
  type Note,
} from '../../events/index.ts';
import type { Doing } from '../inspect/stuck.ts';
import type { EngineDeps } from '../../actors/actor/engine-deps.ts';
import type { Broadcast } from '../../queue/broadcast.ts';
import type { ConversationLog } from '../../actors/log/conversation-log.ts';
import type { Watcher } from '../troupe.ts';

/** Longest text of a round that is kept for new watchers, in characters: its end. */
const MAX_TEXT = 262_144;
/** Length at which a text is cut. It is not cut with each piece, because cutting copies it. */
const CUT_AT = 2 * MAX_TEXT;
/** Most calls of a turn that are kept: the newest. */
const MAX_CALLS = 32;
/** Most turns that are kept: those whose states changed last. */
const MOST_TURNS = 10_000;

/** A running turn of any process and tenant, as far as its notes say. */
export interface HeardTurn {
  address: ActorAddress;
  turn: TurnId;
  since: number;
  doing: Doing;
}

/**
 * The notes of running turns, folded. Notes may be lost and processes killed: readers of what turns of other processes do
 * compare it with the records of the actors.
 *  K1  Only the present attempt of a turn is kept, and of its texts only those of the present round.
 *  K2  The fold is bounded, and empty when no turn runs.
 *  K3  Of turns of other processes only the last state is kept, and the time of their last note: those processes keep the
 *      rest.
 */
interface LiveFold {
  /** A note of a turn of this process. */
  note(note: LiveNote): void;
  /** A note of another process. */
  hear(note: LiveNote): void;
  /** Repeats the turns of this process in a conversation: states, texts from their beginning, and calls so far. */
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
  /** Time of its last note since its state changed. */
  lastWord: number | null;
  /** When it first asked its model without a word since: calls that are tried again do not make it younger. */
  askedAt: number | null;
  /** Null: no notes but states have come from it in this process. */
  told: Telling | null;
  isOwn: boolean;
}

/** What the notes of a turn have said so far. */
interface Telling {
  /** Place of its last note. */
  place: LivePlace;
  text: TextNote | null;
  reasoning: ReasoningNote | null;
  calls: Map<string, Call>;
}

interface Call {
  step: number;
  round: number;
  /** Its arguments so far, until it runs: the note of its start has them. */
  written: ArgumentsNote | null;
  /** The notes of its start, its latest progress and its result, by type. */
  told: Map<string, CalledNote | ProgressNote | ResultNote>;
}

export function createLiveFold(now: () => number = Date.now): LiveFold {
  const turns = new Map<string, Turn>();

  function turnOf(key: string, id: TurnId, { tenant, conversation, agent }: LiveNote): Turn {
    const known = turns.get(key);
    if (known?.id === id) return known;
    const address = { tenant, conversation, agent };
    const turn = {
      address,
      id,
      state: null,
      since: 0,
      lastWord: null,
      askedAt: null,
      told: null,
      isOwn: false,
    };
    turns.set(key, turn);
    return turn;
  }

  /** A running turn goes on when its agent is paused or retired: the note of that state names no turn. */
  function change(note: StateNote, isOwn: boolean): void {
    if (note.turn === null) return;
    const key = addressKey(note);
    const turn = turnOf(key, note.turn, note);
    turns.delete(key);
    if (note.event === 'COMMITTED') return;
    if (turn.state === null) turn.since = note.at;
    if (turn.lastWord !== null || note.state === 'working.acting') turn.askedAt = null;
    if (note.state === 'working.streaming') turn.askedAt ??= note.at;
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

function heardIn({ address, id: turn, since, state, lastWord, askedAt }: Turn): HeardTurn[] {
  return state ? [{ address, turn, since, doing: doingOf(state, lastWord, askedAt) }] : [];
}

function doingOf(
  { state, at: since, doing: names, waits }: StateNote,
  lastWord: number | null,
  askedAt: number | null,
): Doing {
  if (waits) return { kind: 'backoff', since: waits.since, until: waits.next, code: waits.code };
  if (state === 'working.streaming') return { kind: 'model', since: askedAt ?? since, lastWord };
  return state === 'working.acting' ? { kind: 'tools', since, names } : { kind: 'runtime', since };
}

/** The notes of a turn, without those that a note from this place voids: of earlier attempts and rounds. */
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

/** The text with its next piece. A text that is too long loses its beginning. */
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

/** What happens in the running turns of all processes, for watchers. */
export interface LiveFeed {
  listen(listener: LiveListener): () => void;
  /** The running turns of all processes, as far as notes have come. */
  running(): HeardTurn[];
  /**
   * Notes that repeat the running turns of a conversation from their beginning: those of this process are returned;
   * those of other processes come to the listeners as `again`.
   */
  recall(tenant: TenantId, conversation: ConversationId): readonly LiveNote[];
}

type Again = { type: 'again'; tenant: TenantId; conversation: ConversationId; notes: readonly LiveNote[] };
type LiveListener = (note: LiveNote | Again) => void;

/** The feed of a process, and `tell` for its engine. Only the process that works on a turn keeps its notes, as long as it does. */
export function createLiveFeed(
  broadcast: Broadcast,
  onWarning: EngineDeps['onWarning'],
  now: () => number = Date.now,
): { feed: LiveFeed; tell: (note: LiveNote) => void } {
  const listeners = new Set<LiveListener>();
  const fold = createLiveFold(now);

  /** A listener that throws does not affect the others. */
  function notify(note: LiveNote | Again): void {
    for (const listener of listeners) {
      try {
        listener(note);
      } catch (error) {
        onWarning(error, 'stream watcher');
      }
    }
  }

  broadcast.subscribe((notice) => {
    if ('agent' in notice) {
      fold.hear(notice);
      notify(notice);
    } else if (notice.type === 'recalled') notify({ ...notice, type: 'again' });
    else if (notice.type === 'recall') {
      const { tenant, conversation } = notice;
      const notes = fold.of(notice);
      if (notes.length > 0) broadcast.publish({ type: 'recalled', tenant, conversation, notes });
    }
  });
  return {
    feed: {
      listen(listener) {
        listeners.add(listener);
        return () => void listeners.delete(listener);
      },
      running: () => fold.running(),
      recall(tenant, conversation) {
        broadcast.publish({ type: 'recall', tenant, conversation });
        return fold.of({ tenant, conversation });
      },
    },
    tell(note) {
      fold.note(note);
      if (listeners.size > 0) notify(note);
      broadcast.publish(note);
    },
  };
}

type PieceNote = TextNote | ReasoningNote | ArgumentsNote;

/** What a reader has received of the running turn of one agent. */
interface Heard {
  place: LivePlace;
  /** The next position of each text of the round. */
  next: Map<string, number>;
  /** Types of notes received, by call. */
  calls: Map<string, Set<CallNote['type']>>;
  /** Number of notes passed over because earlier ones are missing; the repetition has them. 0: none is missing. */
  held: number;
}

/** Number of further notes after which missing ones are requested again: the request or its answer may have been lost. */
const ASK_AFTER = 50;

/**
 * Orders the notes for one reader. They may come late, get lost or be repeated; the reader gets each text once, in order.
 *  G1  A piece that continues the text passes. Of one that overlaps, the rest passes. One that is ahead is passed over, and
 *      `recall` asks for the running turns from their beginning.
 *  G2  Texts begin anew with each round, and notes of an earlier attempt are dropped.
 *  G3  The start of a call and its result pass once. For a reader that came in the middle of a turn they wait for the
 *      repetition, so that the reader first gets what came before.
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

  /** Takes notes that repeat the running turns from their beginning. */
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
        // Only for a call that the reader knows.
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

  /** Ends the texts of an earlier round. */
  #enterRound(heard: Heard, place: LivePlace): void {
    if (heard.place.round === place.round && heard.place.step === place.step) return;
    heard.place = place;
    heard.next.clear();
    heard.held = 0;
  }

  /** Passes a note over, and asks for the repetition, which contains it. */
  #hold(heard: Heard): void {
    heard.held += 1;
    if (heard.held % ASK_AFTER === 1) this.#recall();
  }

  /** Passes the part of a piece that continues its text. */
  #takePiece(note: PieceNote, isAgain: boolean): void {
    const heard = this.#heardAt(note);
    if (!heard) return;
    const key = note.type === 'arguments' ? keyOfCall(note) : note.type;
    const isEarly = isEarlier(heard.place, note);
    // Of earlier steps, only calls are repeated, to readers that do not know them.
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
    // The reader came in the middle of a turn: the repetition contains this, too.
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

interface WatchersParts {
  log: Pick<ConversationLog, 'onAppended'>;
  live: LiveFeed;
  onWarning: (error: unknown, where: string) => void;
}

interface Watching {
  tell(note: Note): void;
  /** Receives running turns from their beginning. Not for watchers of all conversations. */
  tellAgain?(notes: readonly LiveNote[]): void;
}

interface Watched {
  all: Set<Watching>;
  byConversation: Map<string, Set<Watching>>;
}

/**
 * The watchers by conversation, so that an event costs one map lookup, however many conversations are watched.
 *  W1  A watcher is notified of its own tenant only, and if it named a conversation, of that one only.
 *  W2  A watcher that throws does not affect the others.
 *  W3  Without watchers there are no listeners, so that events of other processes are not even read.
 *  W4  A watcher of one conversation first receives what its running turns have said so far, and then each text once and
 *      in order. A watcher of all conversations receives notes as they come.
 */
export class Watchers {
  readonly #parts: WatchersParts;
  readonly #byTenant = new Map<TenantId, Watched>();
  #stopListening: (() => void) | null = null;

  constructor(parts: WatchersParts) {
    this.#parts = parts;
  }

  add(tenant: TenantId, conversation: string | null, watcher: Watcher): () => void {
    const own =
      conversation === null
        ? { tell: watcher }
        : this.#gated(tenant, conversation as ConversationId, watcher);
    const watched = this.#byTenant.get(tenant) ?? { all: new Set(), byConversation: new Map() };
    this.#byTenant.set(tenant, watched);
    const { all, byConversation } = watched;
    const watchers = conversation === null ? all : (byConversation.get(conversation) ?? new Set());
    if (conversation !== null) byConversation.set(conversation, watchers);
    watchers.add(own);
    this.#stopListening ??= this.#listen();
    if (conversation !== null) {
      queueMicrotask(() => {
        if (watchers.has(own)) this.#recall(tenant, conversation as ConversationId, own);
      });
    }
    return () => {
      if (!watchers.delete(own) || watchers.size > 0) return;
      if (conversation !== null && byConversation.get(conversation) === watchers)
        byConversation.delete(conversation);
      if (all.size > 0 || byConversation.size > 0 || this.#byTenant.get(tenant) !== watched) return;
      this.#byTenant.delete(tenant);
      if (this.#byTenant.size > 0) return;
      this.#stopListening?.();
      this.#stopListening = null;
    };
  }

  #gated(tenant: TenantId, conversation: ConversationId, watcher: Watcher): Watching {
    const gate = new LiveGate(watcher, () => this.#recall(tenant, conversation, own));
    const own: Watching = {
      tell: (note) => (note.type === 'event' ? watcher(note) : gate.take(note)),
      tellAgain: (notes) => gate.takeAgain(notes),
    };
    return own;
  }

  #recall(tenant: TenantId, conversation: ConversationId, to: Watching): void {
    const notes = this.#parts.live.recall(tenant, conversation);
    if (notes.length > 0) this.#tellAgain([to], notes);
  }

  #listen(): () => void {
    const { log, live } = this.#parts;
    const stopLive = live.listen((note) => {
      const { tenant, conversation } = note;
      if (note.type !== 'again') return this.#tell(tenant, conversation, note);
      this.#tellAgain(this.#byTenant.get(tenant)?.byConversation.get(conversation) ?? [], note.notes);
    });
    const stopLog = log.onAppended((tenant, event) =>
      this.#tell(tenant, event.conversation, { type: 'event', event }),
    );
    return () => {
      stopLive();
      stopLog();
    };
  }

  #tell(tenant: TenantId, conversation: ConversationId, note: Note): void {
    const watched = this.#byTenant.get(tenant);
    if (!watched) return;
    for (const watchers of [watched.byConversation.get(conversation) ?? [], watched.all]) {
      for (const watching of watchers) {
        try {
          watching.tell(note);
        } catch (error) {
          this.#parts.onWarning(error, 'watcher');
        }
      }
    }
  }

  #tellAgain(watchers: Iterable<Watching>, notes: readonly LiveNote[]): void {
    for (const watching of watchers) {
      try {
        watching.tellAgain?.(notes);
      } catch (error) {
        this.#parts.onWarning(error, 'watcher');
      }
    }
  }
}
