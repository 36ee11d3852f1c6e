import {
  agentAuthor,
  type DelegationOpenedBody,
  type EventDraft,
  type OutgoingEvent,
} from '../../events/index.ts';
import { isResolved, openTasks, type Task } from '../../machines/task-book.ts';
import { coversOf } from '../turn/pinned-turn.ts';
import { ownDraft, type TurnRun } from '../turn/turn-run.ts';
import { abortTask, endId, taskExcerpt } from './task-events.ts';

type TaskOutcome = 'done' | 'failed' | 'aborted';

/** Events in this log and in others that the end of a turn causes for tasks. */
export interface TaskEnds {
  events: EventDraft[];
  outgoing: OutgoingEvent[];
}

/**
 * Ends tasks together with a turn. The answer of an assignee that waits for nothing is the result of its thread's open tasks.
 * A failed or stopped turn ends them too, with all tasks opened for them, so that no owner waits for ever.
 */
export function taskEnds(run: TurnRun): TaskEnds {
  const { live, ending, turn, runtime } = run;
  const { agent } = live.address;
  const own = (live.tasks.thread?.open ?? []).filter(({ assignee }) => assignee === agent);
  const rest = openTasks(live.tasks, agent);
  if (turn.halt?.kind === 'task aborted')
    return { events: [], outgoing: abortAll(run, rest, 'what it was for has ended') };
  if (own.length === 0) {
    return {
      events: [],
      outgoing: abortAll(run, rest.filter(isSuperseded(run)), 'another result was enough'),
    };
  }
  const superseded = rest.filter(isSuperseded(run));
  if (ending.kind === 'done') {
    const waits = rest.length - superseded.length + openedBy(run);
    const late = abortAll(run, superseded, 'another result was enough');
    if (waits > 0 || run.isAddressedAgain) return { events: [], outgoing: late };
    const done = endOf(run, 'done', run.answer?.text ?? '');
    return { events: done.events, outgoing: [...done.outgoing, ...late] };
  }
  // The interrupting message is answered next: the task goes on, or ends then.
  if (ending.kind === 'aborted' && ending.by === 'interrupted')
    return { events: [], outgoing: abortAll(run, superseded, 'another result was enough') };
  const why = ending.kind === 'failed' ? `${ending.code}: ${ending.message}` : `stopped by ${ending.by}`;
  const ended = endOf(run, ending.kind, why);
  return {
    events: ended.events,
    outgoing: [...ended.outgoing, ...abortAll(run, rest, 'what it was for has ended')],
  };

  function endOf({ answer }: TurnRun, outcome: TaskOutcome, result: string): TaskEnds {
    const kind = outcome === 'aborted' ? ('delegation.aborted' as const) : ('delegation.completed' as const);
    const data = outcome === 'done' && answer && 'data' in answer ? { data: answer.data } : {};
    const bodyOf = ({ delegation, task }: DelegationOpenedBody) => ({
      delegation,
      outcome,
      result,
      task: taskExcerpt(task),
      ...data,
    });
    const by = { author: agentAuthor(runtime.profile), hop: turn.hop + 1 };
    return {
      events: own.map((opened) => ({
        ...ownDraft(run, `completed:${opened.delegation}`),
        kind,
        body: bodyOf(opened),
      })),
      outgoing: own.map((opened) => ({
        conversation: opened.home,
        draft: { id: endId(opened.delegation), ...by, to: [opened.delegator], kind, body: bodyOf(opened) },
      })),
    };
  }
}

/** A predicate: whether a task's group already has enough results, as with the joins `first` and `any`. */
export function isSuperseded({ live, turn }: TurnRun): (task: Task) => boolean {
  const given = new Set(coversOf(turn).map((seq) => live.tasks.ended.get(seq)?.group));
  return ({ group }) => given.has(group) || isResolved(live.tasks, group);
}

function abortAll({ live, runtime }: TurnRun, tasks: readonly Task[], why: string): OutgoingEvent[] {
  return tasks.flatMap((task) => abortTask(live.address, task, agentAuthor(runtime.profile), why));
}

const OPENINGS: readonly EventDraft['kind'][] = ['delegation.opened', 'question', 'approval.requested'];

/** Number of tasks that the turn opens. */
export function openedBy({ outputs }: TurnRun): number {
  return outputs.filter(({ kind }) => OPENINGS.includes(kind)).length;
}
