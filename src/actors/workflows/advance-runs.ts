import {
  type Author,
  type Event,
  type EventDraft,
  type PhaseChangedBody,
  type OutgoingEvent,
  type RunDirectiveBody,
  type RunFact,
  runFactId,
  type RunPart,
  type RunPlace,
  runtimeId,
  SYSTEM_AUTHOR,
} from '../../events/index.ts';
import { isStepNote, isWith, type Run } from '../../machines/run-book.ts';
import { openTasks } from '../../machines/task-book.ts';
import { nextState, stepOf, type WorkflowEvent } from '../../machines/workflow.ts';
import { reachOf } from '../turn/reach.ts';
import { isSuperseded, openedBy } from '../tasks/complete-task.ts';
import type { TurnRun } from '../turn/turn-run.ts';
import { phaseChange } from './change-phase.ts';
import type { Directions } from '../../machines/directions.ts';

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

/** The events that bring a run to its present step. `by`: the person who begins it; the directive then lists all steps. */
export function directedDrafts(run: Run, phase: PhaseChangedBody | null, by: Author | null): EventDraft[] {
  const { steps } = run.state.context;
  const step = stepOf(run.state.context);
  const place = runPlaceOf(run);
  if (!step || !place) return [];
  const author = by ?? SYSTEM_AUTHOR;
  const body = by ? { ...bodyOf(run, place), steps: [...steps] } : bodyOf(run, place);
  const content = `Step ${place.number} of ${place.of} (${step.id}): ${step.brief}`;
  return [
    ...(phase ? [{ ...draftOf(run, 'phase', author), kind: 'phase.changed' as const, body: phase }] : []),
    { ...draftOf(run, 'directive', author), kind: 'run.directive', body: body },
    // After the directive, which the agent needs to understand the request.
    {
      ...draftOf(run, 'step', SYSTEM_AUTHOR),
      to: [place.agent],
      kind: 'message',
      body: { content },
    },
  ];
}

export function failedDrafts(run: Run, reason: string, goOn: string): EventDraft[] {
  const place = runPlaceOf(run);
  if (!place) return [];
  const body = { ...bodyOf(run, place), status: 'failed' as const, reason, goOn };
  return [{ ...draftOf(run, 'failed', SYSTEM_AUTHOR), kind: 'run.directive', body }];
}

/** The events with which a run ends. The earlier mode is restored unless it was changed meanwhile. */
function completedDrafts(run: Run, directions: Directions): EventDraft[] {
  const place = runPlaceOf(run);
  if (!place) return [];
  const body = { ...bodyOf(run, place), status: 'completed' as const };
  const { mode, run: named, rest } = directions;
  const isNamed = mode === 'run' && named === run.run;
  return [
    { ...draftOf(run, 'end', SYSTEM_AUTHOR), kind: 'run.directive', body },
    ...(isNamed
      ? [{ ...draftOf(run, 'back', SYSTEM_AUTHOR), kind: 'mode.changed' as const, body: { mode: rest } }]
      : []),
  ];
}

export function modeDraft(run: Run, by: Author): EventDraft {
  return { ...draftOf(run, 'mode', by), kind: 'mode.changed', body: { mode: 'run', run: run.run } };
}

function factOf({ run, state }: Run, part: RunPart): RunFact {
  return { run, part, number: state.context.number, attempt: state.context.attempt };
}

function draftOf(run: Run, part: RunPart, author: Author) {
  return { id: runFactId(factOf(run, part)), author, to: [] };
}

function bodyOf({ run, directive, state }: Run, step: RunPlace): RunDirectiveBody {
  return { run, directive, brief: stepOf(state.context)?.brief ?? '', status: 'active', step };
}

function runPlaceOf({ workflow, state }: Run): RunPlace | null {
  const { steps, number, attempt, agent } = state.context;
  const step = stepOf(state.context);
  if (!step || agent === null) return null;
  return { workflow, number, of: steps.length, id: step.id, agent, attempt };
}
