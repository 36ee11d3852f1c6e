import type { TurnView } from '../../../src/library/projection/model.ts';
import type { RowsQuery } from './api.ts';
import type { Route } from './route.ts';
import { hasProblem } from './turn-problem.ts';

/** Filters of the log; in the address as `kind`. Without one, minor events are folded. */
export const PRESETS: readonly { id: string; label: string; kinds: string }[] = [
  { id: '', label: 'All, noise folded', kinds: '' },
  { id: '*', label: 'Every event', kinds: '' },
  { id: 'talk', label: 'What was said', kinds: 'message,handoff,question,question.answered,injection' },
  { id: 'turn', label: 'Turns', kinds: 'turn.started,turn.steered,turn.done,turn.failed,turn.aborted,error' },
  { id: 'tool', label: 'Tools', kinds: 'step,tool.result,approval.requested,approval.decided' },
  {
    id: 'task',
    label: 'Handoffs and tasks',
    kinds:
      'handoff,delegation.opened,delegation.completed,delegation.aborted,question,question.answered,approval.requested,approval.decided',
  },
  {
    id: 'context',
    label: 'Context management',
    kinds:
      'compaction,compaction.started,compaction.pruned,compaction.summarising,compaction.done,compaction.failed,prune,baseline,session.started,session.resumed,session.rewound,session.compacted,session.lost,session.rebuilt',
  },
  {
    id: 'steer',
    label: 'Commands and guards',
    kinds:
      'command,guard.stopped,mode.changed,phase.changed,run.directive,joined,left,archived,reopened,todos',
  },
];

type FilterRoute = Pick<Route, 'kind' | 'q' | 'problems' | 'by'>;

export function rowsQuery({ kind, q, problems, by }: FilterRoute): RowsQuery {
  const preset = PRESETS.find(({ id }) => id === kind);
  return {
    kind: (preset ? preset.kinds : kind) || undefined,
    agent: by || undefined,
    level: problems ? 'problem' : undefined,
    q: q || undefined,
  };
}

export function isFiltered(route: FilterRoute): boolean {
  return Object.values(rowsQuery(route)).some((value) => value !== undefined);
}

/** True when a turn matches the filter. Kinds apply to events; a turn is shown whatever its kinds. */
export function matchesTurn(turn: TurnView, { q, problems, by }: FilterRoute): boolean {
  if (problems && !hasProblem(turn)) return false;
  if (by !== '' && !by.split(',').includes(turn.agent)) return false;
  if (q === '') return true;
  const texts = [turn.id, turn.said, turn.trigger?.text, turn.error?.code, turn.error?.message];
  const all = [...texts, ...turn.calls.map(({ name }) => name)];
  return all.some((text) => text?.toLowerCase().includes(q.toLowerCase()));
}
