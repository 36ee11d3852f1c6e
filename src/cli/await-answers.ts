import { type Event, eventOf, isTaskEnd, runFactOf } from '../events/index.ts';
import { activeRuns } from '../machines/run-book.ts';
import { foldTask, isDue, newTaskBook } from '../machines/task-book.ts';

/**
 * Which answers to a message are still missing. It is answered when every addressed agent has ended a turn that
 * covers it, so has everyone whom agents have addressed since, no task is open that one agent has given to another, and no
 * run of a workflow is under way.
 */
export interface Answers {
  note(event: Event): void;
  /** No answer of this agent will come. */
  giveUp(agent: string, code: string, message: string): void;
  /** Agents whose answer is missing. */
  readonly missing: readonly string[];
  /** The same, each with the event that it has not answered. */
  readonly unanswered: readonly { agent: string; seq: number }[];
  readonly areComplete: boolean;
  readonly replies: readonly Event[];
  readonly failures: readonly { agent: string; code: string; message: string }[];
}

/** Id of the runtime's notice that an agent takes no more turns. */
const SET_ASIDE = /^failed:([^:]+):/;

export function awaitAnswers(sent: Event): Answers {
  const missing = new Map(sent.to.map((agent) => [`${agent} ${sent.seq}`, { agent, seq: sent.seq }]));
  const replies: Event[] = [];
  const failures: { agent: string; code: string; message: string }[] = [];
  /** Of what was opened since. */
  const tasks = newTaskBook();
  if (sent.kind === 'run.directive') foldTask(tasks, sent);

  function end(event: Event, covers: readonly number[]): boolean {
    const found = covers.filter((seq) => missing.delete(`${event.author.id} ${seq}`));
    return found.length > 0;
  }

  function note(event: Event): void {
    if (event.seq <= sent.seq) return;
    foldTask(tasks, event);
    const isStep = runFactOf(event.id)?.part === 'step';
    if (event.author.kind === 'agent' || isStep || isTaskEnd(event)) {
      for (const agent of event.to) missing.set(`${agent} ${event.seq}`, { agent, seq: event.seq });
      if (event.kind === 'message' && !isStep) replies.push(event);
    }
    const done = eventOf(event, 'turn.done');
    if (done) end(done, done.body.covers);
    const failed = eventOf(event, 'turn.failed');
    if (failed && end(failed, failed.body.covers)) {
      const { code, message } = failed.body;
      failures.push({ agent: failed.author.id, code, message });
    }
    const aborted = eventOf(event, 'turn.aborted');
    if (aborted && end(aborted, aborted.body.covers)) {
      const message = `the turn was stopped by ${aborted.body.by}`;
      failures.push({ agent: aborted.author.id, code: 'aborted', message });
    }
    const error = eventOf(event, 'error');
    const setAside = error && SET_ASIDE.exec(error.id)?.[1];
    if (setAside && unanswered().some(({ agent }) => agent === setAside)) {
      giveUp(setAside, error.body.code, error.body.message);
    }
  }

  function giveUp(agent: string, code: string, message: string): void {
    for (const [key, each] of missing) if (each.agent === agent) missing.delete(key);
    failures.push({ agent, code, message });
  }

  /** The end of a task wakes its owner with the others that it waits for, and after those are given, nobody. */
  function unanswered(): { agent: string; seq: number }[] {
    return [...missing.values()].filter(({ seq }) => !tasks.ended.has(seq) || isDue(tasks, seq));
  }

  return {
    note,
    giveUp,
    get missing() {
      return [...new Set(unanswered().map(({ agent }) => agent))];
    },
    get unanswered() {
      return unanswered();
    },
    get areComplete() {
      const isGiven = [...tasks.tasks.values()].some(
        ({ kind, end: ended }) => kind === 'delegation' && !ended,
      );
      return unanswered().length === 0 && !isGiven && activeRuns(tasks.runs).length === 0;
    },
    replies,
    failures,
  };
}
