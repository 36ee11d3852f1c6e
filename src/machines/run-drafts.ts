import {
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
import type { Directions } from './directions.ts';
import type { Run } from './run-fold.ts';
import { stepOf } from './workflow.ts';

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

/** The events with which a run ends that somebody may go on with. */
export function failedDrafts(run: Run, reason: string, goOn: string): EventDraft[] {
  const place = runPlaceOf(run);
  if (!place) return [];
  const body = { ...bodyOf(run, place), status: 'failed' as const, reason, goOn };
  return [{ ...draftOf(run, 'failed', SYSTEM_AUTHOR), kind: 'run.directive', body }];
}

/** The events with which a run ends. The earlier mode is restored unless it was changed meanwhile. */
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
