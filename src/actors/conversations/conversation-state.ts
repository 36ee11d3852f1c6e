import type { Mode } from '../../events/index.ts';
import { type Directive, directiveOf } from '../../machines/directions.ts';
import type { TaskBook } from '../../machines/task-book.ts';

/** What a conversation has come to, as its task book says. */
export interface ConversationState {
  /** `archived`, or `open.` and the mode. */
  state: 'archived' | `open.${Mode}`;
  /** Also while it is archived: what it goes on in. */
  mode: Mode;
  phase: string | null;
  /** What its agents have delegated and wait for. The task that it is the thread of is not one of them. */
  openDelegations: number;
  /** What holds in run mode, with the step that it is at; absent in other modes and where no directive was given. */
  run?: Omit<Directive, 'steps'>;
}

export function conversationState({ directions, directives, tasks, open }: TaskBook): ConversationState {
  const { archived, phase } = directions;
  const mode = directions.mode ?? 'agent';
  const delegations = [...open].filter((id) => tasks.get(id)?.kind === 'delegation');
  const run = archived ? null : directiveOf(directions, directives);
  return {
    state: archived ? 'archived' : `open.${mode}`,
    mode,
    phase: phase?.phase ?? null,
    openDelegations: delegations.length,
    ...(run && { run: withoutSteps(run) }),
  };
}

/** All that it will come to is in the log, once. */
function withoutSteps({ steps: _steps, ...directive }: Directive): Omit<Directive, 'steps'> {
  return directive;
}
