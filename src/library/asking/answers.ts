import { type DelegationOpenedBody, type Event, eventOf, isTaskEnd, runFactOf } from '../../events/index.ts';
import type { Failure } from '../troupe.ts';
import { activeRuns } from '../../machines/run-book.ts';
import { foldTask, isDue, newTaskBook, type TaskBook } from '../../machines/task-book.ts';

/**
 * The missing answers to a message. A message is answered when every addressed agent has ended a turn that covers it, as
 * has every agent addressed by agents since, no delegation is open, and no workflow runs.
 */
export interface Answers {
  note(event: Event): void;
  /** Expects no more answers of this agent. */
  giveUp(agent: string, code: string, message: string): void;
  /** Agents with a missing answer. */
  readonly missing: readonly string[];
  /** Missing answers, each with the event that the agent has not answered. */
  readonly unanswered: readonly { agent: string; seq: number }[];
  readonly areComplete: boolean;
  /** Messages of agents since, oldest first. */
  readonly replies: readonly Event[];
  /** Ends of the turns that answered something of it. */
  readonly ends: readonly Event[];
  /** The tasks for other agents that were opened since. */
  readonly delegations: readonly DelegationOpenedBody[];
  readonly failures: readonly Failure[];
}

/** Event id of the runtime's notice that an agent takes no more turns; captures the agent's id. */
const STOPPED = /^failed:([^:]+):/;

/** Of a message, or of the directive that begins a run. */
export function awaitAnswers(sent: Event): Answers {
  const missing = new Map(sent.to.map((agent) => [`${agent} ${sent.seq}`, { agent, seq: sent.seq }]));
  const replies: Event[] = [];
  const failures: Failure[] = [];
  const ends: Event[] = [];
  /** Tasks opened since the message. */
  const tasks = newTaskBook();
  if (sent.kind === 'run.directive') foldTask(tasks, sent);

  function end(event: Event, covers: readonly number[]): boolean {
    const found = covers.filter((seq) => missing.delete(`${event.author.id} ${seq}`));
    if (found.length > 0) ends.push(event);
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
    noteFailure(event);
  }

  function noteFailure(event: Event): void {
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
    const stopped = error && STOPPED.exec(error.id)?.[1];
    if (stopped && unanswered().some(({ agent }) => agent === stopped)) {
      giveUp(stopped, error.body.code, error.body.message);
    }
  }

  function giveUp(agent: string, code: string, message: string): void {
    for (const [key, each] of missing) if (each.agent === agent) missing.delete(key);
    failures.push({ agent, code, message });
  }

  /** A task's end wakes its owner only when its whole group has ended. Later ends wake no agent. */
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
      return unanswered().length === 0 && !isWorkOpen(tasks);
    },
    replies,
    ends,
    get delegations() {
      return delegationsIn(tasks).map(({ body }) => body);
    },
    failures,
  };
}

function delegationsIn({ tasks }: TaskBook) {
  return [...tasks.values()].filter((task) => task.kind === 'delegation');
}

/** Whether a delegation has not ended, or a workflow runs. */
function isWorkOpen(tasks: TaskBook): boolean {
  return delegationsIn(tasks).some(({ end }) => !end) || activeRuns(tasks.runs).length > 0;
}
