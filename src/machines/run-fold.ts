import {
  type AgentId,
  type Event,
  type EventOf,
  isAbout,
  runFactOf,
  type Author,
  type EventDraft,
  type PhaseChangedBody,
  type RunDirectiveBody,
  type RunFact,
  runFactId,
  type RunPart,
  type RunPlace,
  SYSTEM_AUTHOR,
} from '../events/index.ts';
import { newWorkflow, nextState, type WorkflowEvent, type WorkflowState, stepOf } from './workflow.ts';
import type { Directions } from './directions.ts';

/** Runs of workflows by id, in the order of their beginning. A fold, like `TaskFold`. */
export type RunFold = Map<string, Run>;

export interface Run {
  run: string;
  workflow: string;
  directive: string;
  state: WorkflowState;
}

export const COMPLETE_STEP = 'complete_step';

export function foldRuns(fold: RunFold, event: Event): void {
  if (!isAbout(event, 'run')) return;
  switch (event.kind) {
    case 'run.directive':
      return direct(fold, event);
    case 'message': {
      const fact = runFactOf(event.id);
      const run = fact && fold.get(fact.run);
      if (!run || fact.part !== 'step' || event.author.kind !== 'system') return;
      const { number, attempt } = run.state.context;
      if (fact.number === number && fact.attempt === attempt) send(run, { type: 'ASK', seq: event.seq });
      return;
    }
    case 'handoff': {
      const [to] = event.to;
      if (to) sendTo(fold, event.author.id, { type: 'HAND_OVER', to, seq: event.seq });
      return;
    }
    case 'tool.result':
      if (isStepNote(event)) sendTo(fold, event.author.id, { type: 'NOTE' });
      return;
  }
}

/** Whether a tool result completes a step. */
export function isStepNote({ kind, body }: Pick<EventOf<'tool.result'>, 'kind' | 'body'>): boolean {
  return kind === 'tool.result' && body.name === COMPLETE_STEP && body.outcome === 'done';
}

function direct(fold: RunFold, { body }: EventOf<'run.directive'>): void {
  const { run: id, directive, status, step, steps } = body;
  const known = fold.get(id);
  if (!step) {
    // A person ends the run.
    if (known && status === 'completed') send(known, { type: 'END' });
  } else if (status !== 'active') {
    if (known?.state.context.attempt === step.attempt)
      send(known, { type: status === 'completed' ? 'END' : 'FAIL' });
  } else if (!steps) {
    if (known) completeStep(known, step);
  } else {
    const { workflow, number, attempt } = step;
    const run: Run = { run: id, workflow, directive, state: known?.state ?? newWorkflow() };
    send(run, { type: 'BEGIN', steps, number, attempt });
    fold.delete(id);
    fold.set(id, run);
  }
}

/** Completes the present step: a directive for the next step shows that a turn has completed it. */
function completeStep(run: Run, { number, attempt }: { number: number; attempt: number }): void {
  const at = run.state.context;
  if (at.attempt !== attempt || at.number !== number - 1) return;
  if (at.steps[at.number - 1]?.completeWhen === 'tool') send(run, { type: 'NOTE' });
  send(run, { type: 'DONE' });
}

function send(run: Run, event: WorkflowEvent): void {
  run.state = nextState(run.state, event);
}

function sendTo(fold: RunFold, agent: string, event: WorkflowEvent): void {
  for (const run of fold.values()) if (isWith(run, agent)) send(run, event);
}

/** Whether the current step of a run is assigned to the agent. */
export function isWith({ state }: Run, agent: string): boolean {
  return state.value === 'asked' && state.context.agent === (agent as AgentId);
}

export function activeRuns(fold: RunFold): Run[] {
  return [...fold.values()].filter(({ state }) => state.value === 'directed' || state.value === 'asked');
}

/** The events that start the present step of a run. `by`: the person who begins the run; the directive then lists all steps. */
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

/** The events that end a failed run, which a person may continue. */
export function failedDrafts(run: Run, reason: string, goOn: string): EventDraft[] {
  const place = runPlaceOf(run);
  if (!place) return [];
  const body = { ...bodyOf(run, place), status: 'failed' as const, reason, goOn };
  return [{ ...draftOf(run, 'failed', SYSTEM_AUTHOR), kind: 'run.directive', body }];
}

/** The events that end a completed run. The earlier mode is restored unless it was changed meanwhile. */
export function completedDrafts(run: Run, directions: Directions): EventDraft[] {
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
