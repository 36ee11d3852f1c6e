import { TEXTS } from '../../../events/model-texts.ts';
import type { Feature, TurnRun } from '../../attempt/turn-run.ts';
import type { AgentId, EventDraft, GuardStoppedBody, TodoItem, TodosBody } from '../../../events/index.ts';
import { isFaultNote } from '../../turn/judge-answer.ts';
import type { Gate } from '../../attempt/feature-types.ts';
import { openTasks, type TaskFold } from '../../../machines/task-fold.ts';
import { isSuperseded, openedBy } from '../../tasks/task-ends.ts';

export const supervision: Feature = { open: () => ({ supervision: { gate } }) };

/** Why a turn with a valid answer may not end; null if it may. */
function gate(run: TurnRun): Gate | null {
  const note = run.runtime.isSupervised ? reasonsOf(run) : null;
  if (note === null) return null;
  const stop = stopOf(run);
  return stop ? { kind: 'given up', stop } : { kind: 'corrected', note };
}

const MOST_CORRECTIONS = 30;
/** Maximum corrections in a row without a change between them. */
const MOST_IDLE = 3;

function stopOf({ outputs, live, step, deps }: TurnRun): GuardStoppedBody | null {
  const made = countCorrections(outputs, live.tasks.todos.get(live.address.agent) ?? null);
  const goOn = 'ask again to go on from here';
  if (step + 1 >= deps.limits.maxSteps) {
    const message = `@${live.address.agent} has not finished after ${step + 1} steps (limits.maxSteps ${deps.limits.maxSteps})`;
    return { guard: 'steps', message, goOn: `${goOn}, or raise limits.maxSteps in the agents file` };
  }
  if (made.idle >= MOST_IDLE) {
    const message = `@${live.address.agent} was told ${made.idle} times that it has not finished, and changed nothing`;
    return { guard: 'supervision', message, goOn };
  }
  if (made.all < MOST_CORRECTIONS) return null;
  const message = `@${live.address.agent} was told ${made.all} times in one turn that it has not finished, which is the most`;
  return { guard: 'supervision', message, goOn };
}

interface Corrections {
  all: number;
  /** Corrections since something changed. */
  idle: number;
}

/**
 * Counts the corrections among the outputs of a turn. A different list or a successful call is a change. Writing the same list
 * again is not.
 */
function countCorrections(outputs: readonly EventDraft[], before: TodosBody | null): Corrections {
  let all = 0;
  let idle = 0;
  let list = keyOf(before);
  let corrected = list;
  let isChanged = false;
  for (const draft of outputs) {
    if (draft.kind === 'todos') list = keyOf(draft.body);
    else if (draft.kind === 'tool.result') isChanged ||= isWork(draft.body);
    else if (draft.kind === 'injection' && draft.body.oneStep && !isFaultNote(draft)) {
      idle = isChanged || list !== corrected ? 1 : idle + 1;
      all += 1;
      corrected = list;
      isChanged = false;
    }
  }
  return { all, idle: isChanged || list !== corrected ? 0 : idle };
}

function isWork({ name, outcome }: { name: string; outcome: string }): boolean {
  return outcome === 'done' && name !== 'todo';
}

function keyOf(list: TodosBody | null): string {
  return JSON.stringify(list && [list.items.map(({ text, status }) => [text, status]), list.later]);
}

/**
 * The reasons why a turn may not end with its present answer, as text for the agent; null if it may. Depends only on the pinned
 * log, the outputs and the settings, never on the words of the answer, so a process that resumes the turn decides the same.
 */
function reasonsOf(run: TurnRun): string | null {
  const reasons = [todoGate(run), silentGate(run)].filter((reason) => reason !== null);
  return reasons.length > 0 ? reasons.join('\n\n') : null;
}

/** Applies if the list has open items and the agent waits for no task. */
function todoGate(run: TurnRun): string | null {
  const { live, runtime, outputs } = run;
  if (!runtime.tools.has('todo') || isWaiting(run)) return null;
  const open = openItems(listOf(live.tasks, live.address.agent, outputs));
  return open.length > 0 ? todoText(open) : null;
}

/** Whether the agent waits for a task. Tasks that another result has made needless do not count; this turn cancels them. */
function isWaiting(run: TurnRun): boolean {
  const { tasks, address } = run.live;
  const isNeedless = isSuperseded(run);
  return openedBy(run) > 0 || openTasks(tasks, address.agent).some((task) => !isNeedless(task));
}

/** Applies to an empty answer of an agent that has the tool for silence but did not call it. Data is never empty. */
function silentGate({ runtime, answer, silent }: TurnRun): string | null {
  if (!runtime.tools.has('no_response') || silent || !answer) return null;
  return answer.text.trim() === '' ? TEXTS.turn.silent : null;
}

const MOST_NAMED = 12;
const MOST_TEXT = 120;

function todoText(open: readonly TodoItem[]): string {
  const lines = open.slice(0, MOST_NAMED).map(({ text, status }) => `- [${status}] ${clipped(text)}`);
  if (open.length > MOST_NAMED) lines.push(`- and ${open.length - MOST_NAMED} more`);
  return [TEXTS.turn.todosOpen(open.length), ...lines, TEXTS.turn.todosNext].join('\n');
}

function clipped(text: string): string {
  const line = text.replace(/\s+/g, ' ').trim();
  return line.length > MOST_TEXT ? `${line.slice(0, MOST_TEXT).toWellFormed()}…` : line;
}

/** An agent's list of todos with the changes of the running turn; null if it never made one. */
function listOf(fold: TaskFold, agent: AgentId, outputs: readonly EventDraft[]): TodosBody | null {
  const latest = outputs.findLast(({ kind }) => kind === 'todos');
  return latest?.kind === 'todos' ? latest.body : (fold.todos.get(agent) ?? null);
}

function openItems(list: TodosBody | null): TodoItem[] {
  if (!list || list.later) return [];
  return list.items.filter(({ status }) => status === 'pending' || status === 'active');
}
