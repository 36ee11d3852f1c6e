import { type Event, eventOf, isAbout } from '../../events/index.ts';

/**
 * Which exchange an event belongs to: the words of a person that agents are to answer, and all that follows from them. Owns
 * the causes that it was told of, in the order of the log, from any seq on.
 *  X1  A message of a person, its answer to a question, and its directive begin an exchange. A decision of an approval does
 *      not: it goes on with the one of the request.
 *  X2  A turn belongs to the exchange of its first input, a task to that of its opening, whatever came between.
 *  X3  What has no known cause belongs to the exchange that has begun last.
 */
export function createExchangeBook(first = 0) {
  /** Seq of the event that began the exchange. */
  let latest = first;
  const bySeq = new Map<number, number>();
  const byTurn = new Map<string, number>();
  const byTask = new Map<string, number>();
  const byThread = new Map<string, number>();

  function rootOf(event: Event): number {
    if (isOpening(event)) return event.seq;
    const task = taskOf(event);
    if (task !== null && byTask.has(task)) return byTask.get(task) ?? latest;
    const started = eventOf(event, 'turn.started');
    if (started) for (const seq of started.body.inputs) if (bySeq.has(seq)) return bySeq.get(seq) ?? latest;
    return (event.turn !== undefined && byTurn.get(event.turn)) || latest;
  }

  return {
    /** The seq that began the exchange of an event; 0: none has begun. */
    note(event: Event): number {
      const root = rootOf(event);
      if (isOpening(event)) latest = root;
      bySeq.set(event.seq, root);
      if (event.turn !== undefined && !byTurn.has(event.turn)) byTurn.set(event.turn, root);
      const task = taskOf(event);
      if (task !== null && !byTask.has(task)) byTask.set(task, root);
      const opened = eventOf(event, 'delegation.opened');
      if (opened) byThread.set(opened.body.thread, root);
      return root;
    },
    /** The same for a running turn. Undefined: it is not known. */
    ofTurn: (turn: string): number | undefined => byTurn.get(turn),
    /** The same for the thread of a task: of the last one, if it had several. */
    ofThread: (thread: string): number | undefined => byThread.get(thread),
    /** The same for an event that was noted. */
    ofSeq: (seq: number): number | undefined => bySeq.get(seq),
    /** The exchange that has begun last; 0: none. */
    get latest(): number {
      return latest;
    },
  };
}
export type ExchangeBook = ReturnType<typeof createExchangeBook>;

/** Whether an event begins an exchange. */
export function isOpening({ author, kind }: Event): boolean {
  if (author.kind !== 'user') return false;
  return kind === 'message' || kind === 'question.answered' || kind === 'run.directive';
}

/** Whether agents are to answer it: the words of a person, or what a command has recorded. */
export function isForAgents({ author, to }: Event): boolean {
  return author.kind !== 'agent' && to.length > 0;
}

function taskOf(event: Event): string | null {
  if (!isAbout(event, 'taskOpening') && !isAbout(event, 'taskEnd')) return null;
  const { body } = event;
  if ('delegation' in body) return body.delegation;
  return 'question' in body ? body.question : body.request;
}
