import { type Event, type EventDraft, type OutgoingEvent, runtimeId } from '../../events/index.ts';
import { isStepNote, isWith, type Run } from '../../machines/run-book.ts';
import { openTasks } from '../../machines/task-book.ts';
import { nextState, stepOf, type WorkflowEvent } from '../../machines/workflow.ts';
import { completedDrafts, directedDrafts, failedDrafts } from '../conversations/run-drafts.ts';
import { isSuperseded, openedBy } from '../tasks/complete-task.ts';
import { reachOf } from '../turn/pinned-turn.ts';
import type { TurnRun } from '../turn/turn-run.ts';
import { phaseChange } from './change-phase.ts';

/**
 * The events by which a turn that ends a step advances its runs: the next step, or the end of the run. They are part of the
 * turn's commit, so no process has to watch a run, and each step is requested once.
 */
export async function advanceRuns(turn: TurnRun): Promise<OutgoingEvent[]> {
  const { live } = turn;
  const { agent, conversation } = live.address;
  const outgoing: OutgoingEvent[] = [];
  for (const run of live.tasks.runs.values()) {
    const { since } = run.state.context;
    if (!isWith(run, agent) || since === null || since > reachOf(turn.turn)) continue;
    outgoing.push(...(await draftsOf(turn, run)).map((draft) => ({ conversation, draft })));
  }
  return outgoing;
}

async function draftsOf(turn: TurnRun, run: Run): Promise<EventDraft[]> {
  const event = eventOf(turn);
  if (!event) return [];
  if (event.type === 'FAIL') return failed(turn, run, reasonOf(turn));
  const isNoted = turn.outputs.some((draft) => draft.kind === 'tool.result' && isStepNote(draft));
  const before = isNoted ? nextState(run.state, { type: 'NOTE' }) : run.state;
  const state = nextState(before, event);
  if (state.value === 'completed') return completedDrafts(run, turn.live.tasks.directions);
  return state.value === 'directed' ? direct(turn, { ...run, state }) : [];
}

/** A waiting agent is not done, nor is an interrupted one, which continues with the new message. */
function eventOf(turn: TurnRun): WorkflowEvent | null {
  const { ending, live, outputs } = turn;
  if (ending.kind === 'failed') return { type: 'FAIL' };
  if (ending.kind === 'aborted') return ending.by === 'interrupted' ? null : { type: 'FAIL' };
  const open = openTasks(live.tasks, live.address.agent).filter((task) => !isSuperseded(turn)(task));
  const isElsewhere = outputs.some(({ kind }) => kind === 'handoff');
  return open.length + openedBy(turn) > 0 || isElsewhere ? null : { type: 'DONE' };
}

async function direct(turn: TurnRun, run: Run): Promise<EventDraft[]> {
  const { live, deps } = turn;
  const { directions, away } = live.tasks;
  const step = stepOf(run.state.context);
  if (!step) return [];
  if (away.has(step.agent)) return failed(turn, run, `@${step.agent}, whose step it is, takes no part here`);
  const change =
    step.phase === undefined
      ? null
      : await phaseChange(deps, live.address, directions.phase, {
          phase: step.phase,
          unstored: unstoredEvents(turn),
        });
  return directedDrafts(run, change, null);
}

function failed({ live }: TurnRun, run: Run, reason: string): EventDraft[] {
  const step = stepOf(run.state.context)?.id ?? '';
  const options = `--run ${run.run} --step ${step}`;
  const goOn = `troupe run ${live.address.conversation} ${run.workflow} ${options}, or the command run with these`;
  return failedDrafts(run, reason, goOn);
}

function reasonOf({ ending }: TurnRun): string {
  if (ending.kind === 'failed') return `${ending.code}: ${ending.message}`;
  return ending.kind === 'aborted' ? `its turn was stopped by ${ending.by}` : '';
}

/** The events of the turn that are not in the log yet. */
function unstoredEvents({ turn, live, outputs, answer, runtime }: TurnRun): Event[] {
  const { tenant, conversation } = live.address;
  const { id, name } = runtime.profile;
  const place = { tenant, conversation, at: turn.at ?? 0, tokens: 0 };
  const own = outputs.map((draft, index) => ({ ...draft, ...place, seq: reachOf(turn) + 1 + index }));
  const text = answer?.text ?? '';
  if (text.trim() === '') return own;
  const author = { kind: 'agent' as const, id, name };
  const seq = reachOf(turn) + 1 + own.length;
  const reply = { id: runtimeId(turn.id, 'reply'), author, to: [], ...place, seq };
  return [...own, { ...reply, kind: 'message', body: { content: text } }];
}
