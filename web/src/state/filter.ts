import type { EventKind } from '../../../src/events/index.ts';
import type { TurnView } from '../../../src/library/projection/model.ts';
import type { RowsQuery } from './api.ts';
import type { Route } from './route.ts';
import { hasProblem } from './turn-problem.ts';

const KINDS: Record<string, readonly EventKind[]> = {
  talk: ['message', 'handoff', 'question', 'question.answered', 'injection'],
  turn: ['turn.started', 'turn.steered', 'turn.done', 'turn.failed', 'turn.aborted', 'error'],
  tool: ['step', 'tool.result', 'approval.requested', 'approval.decided'],
  task: [
    'handoff',
    'delegation.opened',
    'delegation.ended',
    'question',
    'question.answered',
    'approval.requested',
    'approval.decided',
    'todos',
  ],
  context: ['compaction', 'compaction.progress', 'prune', 'baseline', 'session.changed'],
  steer: [
    'command',
    'notice',
    'guard.stopped',
    'mode.changed',
    'phase.changed',
    'run.directive',
    'membership.changed',
  ],
};

/** Filters of the log, in the address as `kind`. Without a filter, minor events are folded. */
export const PRESETS: readonly (readonly [kind: string, label: string])[] = [
  ['', 'All, folded'],
  ['*', 'Every event'],
  ['talk', 'What was said'],
  ['turn', 'Turns'],
  ['tool', 'Tools'],
  ['task', 'Handoffs and tasks'],
  ['context', 'Context management'],
  ['steer', 'Commands and guards'],
];

type FilterRoute = Pick<Route, 'kind' | 'q' | 'problems' | 'by'>;

export function rowsQuery({ kind, q, problems, by }: FilterRoute): RowsQuery {
  return {
    kind: kind === '*' ? undefined : (KINDS[kind]?.join() ?? (kind || undefined)),
    agent: by || undefined,
    level: problems ? 'problem' : undefined,
    q: q || undefined,
  };
}

export function isFiltered(route: FilterRoute): boolean {
  return Object.values(rowsQuery(route)).some((value) => value !== undefined);
}

/** Whether a turn matches the filter. `kind` applies to events only. */
export function matchesTurn(turn: TurnView, { q, problems, by }: FilterRoute): boolean {
  if (problems && !hasProblem(turn)) return false;
  if (by !== '' && !by.split(',').includes(turn.agent)) return false;
  if (q === '') return true;
  const texts = [turn.id, turn.said, turn.trigger?.text, turn.error?.code, turn.error?.message];
  const all = [...texts, ...turn.calls.map(({ name }) => name)];
  return all.some((text) => text?.toLowerCase().includes(q.toLowerCase()));
}
