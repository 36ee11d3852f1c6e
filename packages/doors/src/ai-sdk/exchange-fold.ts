import { type Event, eventOf, isAbout } from '../troupe.ts';

/**
 * Which exchanges an event belongs to: the words of a person that agents are to answer, and all that follows from them. An
 * exchange has the seq of those words. Owns the causes that it was told of, in the order of the log, from any seq on.
 *  X1  A message of a person, its answer to a question, and its directive begin an exchange. A decision of an approval does
 *      not: it goes on with the one of the request.
 *  X2  A turn belongs to the exchanges of its inputs, those that it was steered by included; a task to those of its opening,
 *      whatever came between.
 *  X3  What is of a turn that was not seen to begin belongs to none. Anything else without a known cause belongs to the
 *      exchange that has begun last.
 */
export function createExchangeFold() {
  /** The exchange that has begun last. */
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
    /** Those of a running turn. */
    ofTurn: (turn: string): readonly number[] => byTurn.get(turn) ?? [],
    /** Those of the thread of a task: of the last one, if it had several. */
    ofThread: (thread: string): readonly number[] => byThread.get(thread) ?? [],
    /** Those of an event that was noted. */
    ofSeq: (seq: number): readonly number[] => bySeq.get(seq) ?? [],
    /** The exchange that has begun last; 0: none. */
    get latest(): number {
      return latest;
    },
  };
}
export type ExchangeFold = ReturnType<typeof createExchangeFold>;

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
