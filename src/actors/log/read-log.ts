import {
  type Event,
  type EventId,
  type ActorAddress,
  type AgentId,
  type EventOf,
  isErasure,
} from '../../events/index.ts';
import { type ConversationKey, PAGE_BYTES, type Store } from '../../store/store.ts';
import {
  atOnce,
  createView,
  eventText,
  foldCovered,
  foldEvent,
  foldOrBegin,
  type Steps,
  type View,
} from '../../context/index.ts';
import type { Clock } from '../../base/clock.ts';
import { TroupeError } from '../../base/errors.ts';
import { slicesOf } from '../../base/slices.ts';
import { foldTask, newTaskFold, type TaskFold } from '../../machines/task-fold.ts';

/** A source of pages: the store, or the log, which has recent events in memory. */
export interface PageSource {
  readPage(
    log: ConversationKey,
    range: { after: number; upTo?: number },
  ): Promise<{ events: readonly Event[]; isLast: boolean }>;
  /** Drops the events of a log from memory. Absent if none are kept. */
  forget?(log: ConversationKey): void;
}

/** A source for folding a view: pages, and single events that a checkpoint left out. */
export interface ViewSource extends PageSource {
  readById(log: ConversationKey, id: string): Promise<Event | null>;
}

/** The events of a log after a seq, up to `upTo` or the head, in pages. Other work runs between pages. */
export async function* readPages(
  source: PageSource,
  log: ConversationKey,
  { after, upTo }: { after: number; upTo?: number | undefined },
): AsyncGenerator<readonly Event[], void> {
  const end = upTo === undefined ? {} : { upTo };
  for (let at = after; ;) {
    const { events, isLast } = await source.readPage(log, { after: at, ...end });
    if (events.length > 0) yield events;
    at = events.at(-1)?.seq ?? at;
    if (isLast) return;
  }
}

/** Maximum characters from which a summary is made, far more than it can contain. */
const MOST_CHARS = 16 * 1_048_576;

/** The newest events of a range with at most `mostChars` of text, oldest first. Reads in bounded pages. */
export async function readNewest(
  store: Pick<Store, 'read'>,
  log: ConversationKey,
  { after, upTo, limit }: { after: number; upTo: number; limit: number },
  mostChars: number = MOST_CHARS,
): Promise<Event[]> {
  const kept: { event: Event; chars: number }[] = [];
  let chars = 0;
  for (let at = after; at < upTo;) {
    const page = await store.read(log, { after: at, upTo, limit, maxBytes: PAGE_BYTES });
    if (page.length === 0) break;
    for (const event of page) {
      const length = eventText(event).length;
      kept.push({ event, chars: length });
      chars += length;
    }
    while (chars > mostChars && kept.length > 1) chars -= kept.shift()?.chars ?? 0;
    at = page.at(-1)?.seq ?? upTo;
  }
  return kept.map(({ event }) => event);
}

/** Stored folds of logs; see `checkpoints/checkpoints.ts`. They only save reading: the result of a fold never depends on them. */
export interface Checkpoints {
  /** Minimum events between two checkpoints of a subject. */
  readonly least: number;
  /** The newest usable checkpoint of a subject. Never throws. */
  load(log: ConversationKey, subject: string, range?: { upTo?: number }): Promise<Loaded | null>;
  /** The place to pass to `save`. Null if the log has no such event. Never throws. */
  mark(log: ConversationKey, seq: number): Promise<Place | null>;
  /** Queues a checkpoint. The caller must no longer change `parts`. Each should take only a few milliseconds to pack. */
  save(log: ConversationKey, subject: string, place: Place, parts: readonly unknown[]): void;
  /** Removes the checkpoints of a log whose words before `seq` were erased, even those that are being written. */
  erase(log: ConversationKey, seq: number): Promise<void>;
  /** Writes queued checkpoints. */
  flush(): Promise<void>;
}

export interface Place {
  seq: number;
  mark: string;
}

export interface Loaded {
  seq: number;
  parts: unknown[];
}

/** The seq up to which an actor's folds are stored, and the last compaction or prune in the stored view. */
export interface Stored {
  seq: number;
  cut: EventId | null;
}

export const NOTHING_STORED: Stored = { seq: 0, cut: null };

/** No checkpoints: for engines with a store in memory, and for tests. */
export const NO_CHECKPOINTS: Checkpoints = {
  least: Infinity,
  load: () => Promise.resolve(null),
  mark: () => Promise.resolve(null),
  save: () => undefined,
  erase: () => Promise.resolve(),
  flush: () => Promise.resolve(),
};

interface FoldOptions<T> {
  begin: (log: ConversationKey, name: string) => T;
  /** Loads a stored fold; null if there is none. */
  restore?: (log: ConversationKey, name: string) => Promise<{ state: T; seq: number } | null>;
  /** Stores a fold, if that is worth it. `stored`: seq of the last stored fold. Returns the seq of the fold stored afterwards. */
  store?: (log: ConversationKey, state: T, seqs: { seq: number; stored: number }) => number;
  /** Folds an event into `state`. Returns a promise only if that takes long. */
  fold: (state: T, event: Event) => Promise<void> | void;
  /** Maximum folds that are kept. The least recently read is dropped first. */
  kept: number;
  /** The weight of a fold, and the maximum of all. A fold that alone weighs more is not kept. */
  weigh?: { of: (state: T) => number; most: number };
}

export interface LogFolds<T> {
  /** The fold up to the head of the log. Use it immediately: the next read changes it. `name`: distinguishes folds of a log. */
  of(log: ConversationKey, name?: string): Promise<T>;
}

interface Kept<T> {
  state: T;
  seq: number;
  /** Id of the event at `seq`. */
  id: EventId | null;
  stored: number;
}

/**
 * Cached folds of logs, to which only new events are added. Owns the folds, which may be lost at any moment.
 *  1. A read fetches the new events and the last folded one. If that seq has another event, the conversation was deleted
 *     and created again, and is folded from its beginning.
 *  2. After an erasure the log is folded again from its first event, not from a stored fold.
 *  3. Concurrent reads of one log wait for each other. The first one folds, the others read only newer events.
 */
export function createLogFolds<T>(source: PageSource, options: FoldOptions<T>): LogFolds<T> {
  const { begin, restore, store, fold, kept: most, weigh } = options;
  const weightOf = (state: T): number => weigh?.of(state) ?? 0;
  const heaviest = weigh?.most ?? 0;
  const known = new Map<string, Kept<T>>();
  const queues = new Map<string, Promise<unknown>>();

  const anew = (log: ConversationKey, name: string): Kept<T> => ({
    state: begin(log, name),
    seq: 0,
    id: null,
    stored: 0,
  });

  async function catchUp(log: ConversationKey, name: string, kept: Kept<T>): Promise<Kept<T>> {
    const hasOld = kept.seq > 0;
    let isFirst = kept.seq > 0;
    for await (const events of readPages(source, log, { after: Math.max(0, kept.seq - 1) })) {
      if (isFirst && kept.id !== null && events[0]?.id !== kept.id)
        return catchUp(log, name, anew(log, name));
      isFirst = false;
      for (const event of events) {
        if (event.seq === kept.seq) kept.id = event.id;
        if (event.seq <= kept.seq) continue;
        // The fold may contain words that were erased.
        if (event.kind === 'command' && hasOld && isErasure(event)) {
          source.forget?.(log);
          return catchUp(log, name, anew(log, name));
        }
        const folding = fold(kept.state, event);
        if (folding) await folding;
        kept.seq = event.seq;
        kept.id = event.id;
      }
    }
    // The last folded event no longer exists, so the conversation was deleted.
    return isFirst ? anew(log, name) : kept;
  }

  /** A fold from a checkpoint. Its `id` is null, because the checkpoint was already compared with the log. */
  async function restored(log: ConversationKey, name: string): Promise<Kept<T>> {
    const found = await restore?.(log, name);
    return found ? { ...found, id: null, stored: found.seq } : anew(log, name);
  }

  function keep(key: string, kept: Kept<T>): void {
    if (weightOf(kept.state) > heaviest) return;
    known.set(key, kept);
    let weight = 0;
    for (const { state } of known.values()) weight += weightOf(state);
    for (const [oldest, { state }] of known) {
      if (known.size <= most && weight <= heaviest) return;
      weight -= weightOf(state);
      known.delete(oldest);
    }
  }

  async function readFold(key: string, log: ConversationKey, name: string): Promise<T> {
    const before = known.get(key);
    // A fold that failed half-way must not be used again.
    known.delete(key);
    const kept = await catchUp(log, name, before ?? (await restored(log, name)));
    keep(key, kept);
    if (store) kept.stored = store(log, kept.state, kept);
    return kept.state;
  }

  return {
    of(log, name = '') {
      const key = `${log.tenant}/${log.conversation}/${name}`;
      const read = (queues.get(key) ?? Promise.resolve())
        .catch(() => undefined)
        .then(() => readFold(key, log, name));
      queues.set(key, read);
      const leave = () => void (queues.get(key) === read && queues.delete(key));
      read.then(leave, leave);
      return read;
    },
  };
}

/** Characters per slice: about 10 ms of work, after which timers, sockets and other actors are served. */
const SLICE_CHARS = 32_768;

/** The characters that the context work of one turn may still process. */
export interface TurnWork {
  left: number;
}

/**
 * Runs long pure work in slices. Between them leases are renewed and other work runs. Throws `context_too_costly` when the work
 * of the turn is used up.
 */
export async function inSlices<T>(
  clock: Pick<Clock, 'monotonic' | 'sleep'>,
  steps: Steps<T>,
  work?: TurnWork,
): Promise<T> {
  let chars = 0;
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
    if (work && (work.left -= step.value) < 0) throw tooCostly();
    chars += step.value;
    if (chars < SLICE_CHARS) continue;
    chars = 0;
    await slicesOf(clock).next();
  }
}

export function tooCostly(): TroupeError {
  return new TroupeError(
    'context_too_costly',
    'what was said since the last compaction takes more work to read and compact than one turn may cost; begin another conversation, or import a part of this one',
  );
}

/** Folds of an actor's log: its view and the tasks, up to the same seq. */
export interface Folded {
  view: View;
  tasks: TaskFold;
  /** Set if words were erased during a turn: the folds may be used for this turn only. */
  isStale?: boolean;
}

/**
 * Extends both folds up to `upTo`, by default the head of the log. Returns the seq reached. The cost depends only on the new
 * events.
 */
export async function catchUp(
  log: ViewSource,
  address: ActorAddress,
  folded: Folded,
  upTo?: number,
): Promise<number> {
  const { view, tasks } = folded;
  const known = view.upTo;
  const range = upTo === undefined ? {} : { upTo };
  for (let isLast = false; !isLast;) {
    const page = await log.readPage(address, { after: view.upTo, ...range });
    for (const event of page.events) {
      if (event.kind === 'baseline' && adoptsUnknown(view, event)) await supplyAdopted(log, view, event);
      if (event.kind === 'command' && known > 0 && isErasure(event)) {
        log.forget?.(address);
        if (view.turn === null) return catchUp(log, address, begunAgain(folded), upTo);
        folded.isStale = true;
      }
      foldEvent(view, event);
      foldTask(tasks, event);
    }
    isLast = page.isLast;
  }
  return view.upTo;
}

/** The summary in force in a log, and the seq up to which only ended turns before it have shown anything. */
interface Covered {
  by: EventOf<'baseline'>;
  upTo: number;
}

/** Events read at once when looking for the summary in force, and the most in all: more than a window holds. */
const STRIDE = 512;
const MOST_SEARCHED = 8_192;

/** Reads backwards from `end`, because a summary is mostly near the end of its log. Null: none was found, or no turn before it. */
async function findCovered(log: PageSource, address: ActorAddress, end: number): Promise<Covered | null> {
  const look = createSearch(address.agent);
  for (let upTo = end; upTo > Math.max(0, end - MOST_SEARCHED); upTo -= STRIDE) {
    const events: Event[] = [];
    for await (const page of readPages(log, address, { after: Math.max(0, upTo - STRIDE), upTo }))
      events.push(...page);
    for (const event of events.toReversed()) {
      const found = look(event);
      if (found) return found;
    }
  }
  return null;
}

/** Returns a function for the events of a log, newest first: null until they show what is covered. */
function createSearch(agent: AgentId): (event: Event) => Covered | null {
  let by: EventOf<'baseline'> | null = null;
  let limit = 0;
  return (event) => {
    if (event.author.kind !== 'agent' || event.author.id !== agent) return null;
    if (event.kind === 'baseline' && by === null && event.body.adopts?.compaction) {
      by = event;
      limit = event.body.adopts.upTo;
    }
    if (by === null || (event.kind !== 'turn.started' && event.kind !== 'turn.steered')) return null;
    // A summary covers no input of the turn that made it.
    if (event.turn === by.turn) for (const seq of event.body.inputs) limit = Math.min(limit, seq - 1);
    else if (event.kind === 'turn.started' && event.body.upTo <= limit) return { by, upTo: event.body.upTo };
    return null;
  };
}

/**
 * Extends empty folds up to the summary in force, without rendering what it covers. The result is that of `catchUp`; if the log
 * is not as expected, the folds stay empty. `end`: seq up to which they may go.
 */
export async function beginAtSummary(
  log: ViewSource,
  address: ActorAddress,
  folded: Folded,
  end: number,
): Promise<void> {
  const covered = await findCovered(log, address, end);
  if (covered === null) return;
  const { view, tasks } = folded;
  const { seq: last } = covered.by;
  // Without `upTo`, pages that another fold has just read come from memory.
  for await (const events of readPages(log, address, { after: 0 })) {
    for (const event of events) {
      if (event.seq > last) break;
      const steps = event.seq <= covered.upTo ? foldCovered(view, event) : foldOrBegin(view, event);
      if (steps) atOnce(steps);
      foldTask(tasks, event);
    }
    if (view.upTo >= last) break;
  }
  if (!isInForce(view, covered)) begunAgain(folded);
}

function isInForce({ slots, baseline, floor, turn }: View, { by, upTo }: Covered): boolean {
  const { adopts } = by.body;
  const [first] = slots;
  const isShown = first?.layer === 'summary' && first.event === adopts?.compaction;
  const isOfOthers = [...(turn?.inputs ?? [])].every((seq) => seq > upTo);
  return isShown && isOfOthers && baseline?.id === by.id && floor === adopts.upTo;
}

/** The same folds, empty, because words in them were erased from the log. */
function begunAgain(folded: Folded): Folded {
  const { view, tasks } = folded;
  Object.assign(view, createView(view.agent, view.secret));
  Object.assign(tasks, newTaskFold());
  return folded;
}

/** Whether an event adopts a compaction whose text the view lacks, because a checkpoint left it out. */
function adoptsUnknown({ compactions }: View, event: Event): event is EventOf<'baseline'> {
  const id = event.kind === 'baseline' ? event.body.adopts?.compaction : undefined;
  return id !== undefined && id !== null && !compactions.has(id);
}

/** Reads the text of an adopted compaction again, and puts it before those that the view has. */
async function supplyAdopted(log: ViewSource, view: View, baseline: EventOf<'baseline'>): Promise<void> {
  const adopted = await log.readById(baseline, baseline.body.adopts?.compaction ?? '');
  if (adopted?.kind !== 'compaction' || adopted.seq > baseline.seq) return;
  view.compactions = new Map([[adopted.id, adopted.body], ...view.compactions]);
}

type Ticking = Pick<Clock, 'monotonic' | 'sleep'>;

/**
 * `foldEvent` in slices, for views that nobody else uses, because the view is inconsistent meanwhile. Only events with which a
 * turn renders its inputs take long; for others there is no promise.
 */
export function foldInSlices(clock: Ticking, view: View, event: Event): Promise<void> | undefined {
  const steps = foldOrBegin(view, event);
  return steps && inSlices(clock, steps);
}

/** `catchUp` in slices, for a view that nobody else uses. */
export async function catchUpInSlices(
  { log, clock }: { log: ViewSource; clock: Ticking },
  address: ActorAddress,
  folded: Folded,
  upTo?: number,
): Promise<number> {
  const { view, tasks } = folded;
  const known = view.upTo;
  for await (const events of readPages(log, address, { after: view.upTo, upTo })) {
    for (const event of events) {
      if (adoptsUnknown(view, event)) await supplyAdopted(log, view, event);
      if (event.kind === 'command' && known > 0 && view.turn === null && isErasure(event)) {
        log.forget?.(address);
        return catchUpInSlices({ log, clock }, address, begunAgain(folded), upTo);
      }
      const folding = foldInSlices(clock, view, event);
      if (folding) await folding;
      foldTask(tasks, event);
    }
  }
  return view.upTo;
}

const KEPT = 16;
/** Maximum tokens of all views: about 100 MB, because a token is some four bytes and a message needs more than its text. */
const MOST_TOKENS = 16_000_000;
const MESSAGE_TOKENS = 50;

/** Cached views of agents that are not at work, by agent, so that inspecting a prompt again need not fold its log again. */
export function createColdViews(
  source: ViewSource,
  secretOf: (address: ActorAddress) => string,
  clock: Pick<Clock, 'monotonic' | 'sleep'>,
  restore?: (address: ActorAddress) => Promise<Folded | null>,
): LogFolds<Folded> {
  return createLogFolds<Folded>(source, {
    async restore({ tenant, conversation }, name) {
      const folded = await restore?.({ tenant, conversation, agent: name as AgentId });
      return folded ? { state: folded, seq: folded.view.upTo } : null;
    },
    begin: ({ tenant, conversation }, name) => {
      const agent = name as AgentId;
      return { view: createView(agent, secretOf({ tenant, conversation, agent })), tasks: newTaskFold() };
    },
    fold({ view, tasks }, event) {
      foldTask(tasks, event);
      if (!adoptsUnknown(view, event)) return foldInSlices(clock, view, event);
      return supplyAdopted(source, view, event).then(() => foldInSlices(clock, view, event));
    },
    kept: KEPT,
    weigh: {
      of: ({ view }) => view.tokens + MESSAGE_TOKENS * view.slots.length,
      most: MOST_TOKENS,
    },
  });
}
