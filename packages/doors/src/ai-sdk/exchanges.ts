import {
  type Answers,
  type ChatChange,
  type ConversationId,
  type Event,
  type Note,
  type Troupe,
  type TurnNote,
  awaitAnswers,
  chatChanges,
  eventOf,
  isAbout,
  storedEvents,
} from '../troupe.ts';

/** A message that agents should answer and have not answered yet. */
interface Pending {
  /** Seqs of the exchanges that it belongs to. */
  roots: readonly number[];
  seq: number;
  answers: Answers;
}

/** Most pending messages that are tracked; older ones count as answered. */
const MOST_PENDING = 64;

/** The exchanges in a log. Owns which messages are unanswered. */
class ExchangeLog {
  readonly fold: ExchangeFold;
  #pending: Pending[] = [];
  last: number;

  constructor(after: number) {
    this.last = after;
    this.fold = createExchangeFold();
  }

  /** Returns the exchanges that the event belongs to; none if the event was already noted. */
  note(event: Event): readonly number[] {
    if (event.seq <= this.last) return [];
    this.last = event.seq;
    const roots = this.fold.note(event);
    for (const { answers } of this.#pending) answers.note(event);
    this.#pending = this.#pending.filter(({ answers }) => !answers.areComplete);
    if (isForAgents(event)) this.#pending.push({ roots, seq: event.seq, answers: awaitAnswers(event) });
    if (this.#pending.length > MOST_PENDING) this.#pending.shift();
    return roots;
  }

  /** Unanswered messages, oldest first. */
  get pending(): readonly Omit<Pending, 'answers'>[] {
    return this.#pending;
  }
}

/** Events that are read to find the beginning of an exchange. If it is not among them, eight times as many are read. */
const LOOK_BACK = 1_000;
const WIDER = 8;

/** The newest part of a log for which `isEnough` is true, or the whole log. Throws `conversation_unknown`. */
export async function lookBack(
  troupe: Troupe,
  conversation: ConversationId,
  isEnough: (log: ExchangeLog) => boolean,
): Promise<ExchangeLog> {
  const { head } = await troupe.events(conversation, { after: 0, limit: 1 });
  for (let most = LOOK_BACK; ; most *= WIDER) {
    const after = Math.max(0, head - most);
    const log = new ExchangeLog(after);
    for await (const event of storedEvents(troupe, conversation, after)) log.note(event);
    if (after === 0 || isEnough(log)) return log;
  }
}

/** Most notes held of one turn. The content of a dropped note comes with its event. */
const MOST_HELD = 256;

/** Notes that came before the event that tells which exchange their turn belongs to. */
class HeldNotes {
  readonly #byTurn = new Map<string, TurnNote[]>();

  add(note: TurnNote): void {
    const notes = this.#byTurn.get(note.turn) ?? [];
    if (notes.length < MOST_HELD) notes.push(note);
    this.#byTurn.set(note.turn, notes);
  }

  /** Returns the held notes whose exchange this event tells. */
  take(event: Event): TurnNote[] {
    const began = eventOf(event, 'turn.started') ?? eventOf(event, 'turn.steered');
    const turn = event.turn ?? '';
    if (!began) return [];
    const notes = this.#byTurn.get(turn) ?? [];
    this.#byTurn.delete(turn);
    const before = began.kind === 'turn.steered' ? began.body.step : 0;
    return notes.filter(({ step }) => step > before);
  }

  drop(event: Event): void {
    if (isAbout(event, 'turnEnd')) this.#byTurn.delete(event.turn ?? '');
  }
}

/** A change, and whether it comes after what the reader already has. */
interface Told {
  change: ChatChange;
  isNew: boolean;
}

interface Telling {
  troupe: Troupe;
  conversation: ConversationId;
  /** Seq of the event that began the exchange. */
  root: number;
  /** Changes of events before this seq are marked as not new. */
  from: number;
  /** Threads of its tasks that are included, each from a seq on. */
  threads?: ReadonlyMap<ConversationId, number> | undefined;
  signal: AbortSignal;
}

/**
 * Everything that followed and still follows in an exchange, until its agents rest. Each event is yielded once, from whichever
 * source it was read. Events of other exchanges are left out.
 */
export async function* tellExchange(telling: Telling): AsyncGenerator<Told, void> {
  const { troupe, conversation, root, from, signal, threads = new Map<ConversationId, number>() } = telling;
  const log = new ExchangeLog(root - 1);
  const changesOf = chatChanges();
  /** Seq of the last event that was yielded, by thread. */
  const told = new Map<ConversationId, number>();

  function isNext(event: Event): boolean {
    if (event.conversation === conversation) return log.note(event).includes(root) && event.seq !== root;
    const isNew = event.seq > (told.get(event.conversation) ?? 0);
    if (isNew) told.set(event.conversation, event.seq);
    return isNew;
  }

  /** Notes of turns that have not begun yet, or that belong to other exchanges. */
  const held = new HeldNotes();

  function* tell(note: Note): Generator<Told, void> {
    if (note.type === 'state') return;
    if (note.type !== 'event') {
      const isOther = note.conversation === conversation && !log.fold.ofTurn(note.turn).includes(root);
      if (isOther) return held.add(note);
      for (const change of changesOf(note)) yield { change, isNew: true };
      return;
    }
    const { event } = note;
    const isHere = event.conversation === conversation;
    if (!isNext(event)) return held.drop(event);
    const isNew = event.seq >= (isHere ? from : (threads.get(event.conversation) ?? 0));
    for (const change of changesOf(note)) yield { change, isNew };
    if (isHere) for (const each of held.take(event)) yield* tell(each);
  }

  async function* stored(): AsyncGenerator<Told, void> {
    for (const each of threads.keys())
      for await (const event of storedEvents(troupe, each, told.get(each) ?? 0, signal))
        yield* tell({ type: 'event', event });
    for await (const event of storedEvents(troupe, conversation, log.last, signal))
      yield* tell({ type: 'event', event });
  }

  for (let before = -1; before < log.last;) {
    yield* stored();
    before = log.last;
    const next = log.pending.find(({ roots }) => roots.includes(root));
    if (!next || signal.aborted) return;
    for await (const note of troupe.rejoin(conversation, next.seq, { signal })) yield* tell(note);
  }
}

/**
 * Finds the exchanges that an event belongs to: a person's message for agents, and everything that follows from it. An
 * exchange is named by the seq of that message. Owns the causes in a part of the log, which must be noted in order, from any
 * seq on.
 *  X1  A person's message, answer to a question, or directive begins an exchange. The decision of an approval does not:
 *      it continues the exchange of the request.
 *  X2  A turn belongs to the exchanges of its inputs, including those that steered it; a task belongs to the exchanges
 *      in which it was opened, whatever came between.
 *  X3  Events of a turn whose beginning was not noted belong to no exchange. Any other event without a known cause
 *      belongs to the exchange that began last.
 */
export function createExchangeFold() {
  /** Seq of the exchange that began last. */
  let latest = 0;
  const bySeq = new Map<number, readonly number[]>();
  const byTurn = new Map<string, readonly number[]>();
  const byTask = new Map<string, readonly number[]>();
  const byThread = new Map<string, readonly number[]>();

  function ofInputs(seqs: readonly number[]): number[] {
    return [...new Set(seqs.flatMap((seq) => bySeq.get(seq) ?? []))];
  }

  function noteTurn(turn: string, event: Event): readonly number[] {
    const began = eventOf(event, 'turn.started') ?? eventOf(event, 'turn.steered');
    const known = byTurn.get(turn) ?? [];
    if (!began) return known;
    const all = [...new Set([...known, ...ofInputs(began.body.inputs)])];
    byTurn.set(turn, all);
    return all;
  }

  function rootsOf(event: Event): readonly number[] {
    if (isOpening(event)) return [event.seq];
    const task = taskOf(event);
    const known = task === null ? undefined : byTask.get(task);
    if (known) return known;
    if (event.turn !== undefined) return noteTurn(event.turn, event);
    return latest > 0 ? [latest] : [];
  }

  return {
    /** The exchanges of an event, in the order of the log. */
    note(event: Event): readonly number[] {
      const roots = rootsOf(event);
      if (isOpening(event)) latest = event.seq;
      bySeq.set(event.seq, roots);
      const task = taskOf(event);
      if (task !== null && !byTask.has(task)) byTask.set(task, roots);
      const opened = eventOf(event, 'delegation.opened');
      if (opened) byThread.set(opened.body.thread, roots);
      return roots;
    },
    /** The exchanges of a running turn. */
    ofTurn: (turn: string): readonly number[] => byTurn.get(turn) ?? [],
    /** The exchanges of a task's thread; of the last task, if the thread had several. */
    ofThread: (thread: string): readonly number[] => byThread.get(thread) ?? [],
    /** The exchanges of a noted event. */
    ofSeq: (seq: number): readonly number[] => bySeq.get(seq) ?? [],
    /** Seq of the exchange that began last; 0 if there is none. */
    get latest(): number {
      return latest;
    },
  };
}
type ExchangeFold = ReturnType<typeof createExchangeFold>;

export function isOpening({ author, kind }: Event): boolean {
  if (author.kind !== 'user') return false;
  return kind === 'message' || kind === 'question.answered' || kind === 'run.directive';
}

/** Whether agents should answer it: a person's message, or an event that a command has recorded. */
function isForAgents({ author, to }: Event): boolean {
  return author.kind !== 'agent' && to.length > 0;
}

function taskOf(event: Event): string | null {
  if (!isAbout(event, 'taskOpening') && !isAbout(event, 'taskEnd')) return null;
  const { body } = event;
  if ('delegation' in body) return body.delegation;
  return 'question' in body ? body.question : body.request;
}
