import type { AgentId, Mode } from '../../events/index.ts';
import { type Directive, directiveOf } from '../../machines/directions.ts';
import type { CompactionBook } from '../../machines/compaction-book.ts';
import type { TaskBook } from '../../machines/task-book.ts';

/** State of a conversation, from its task book. */
export interface ConversationState {
  /** `archived`, or `open.` and the mode. */
  state: 'archived' | `open.${Mode}`;
  /** Also given while archived: the mode after reopening. */
  mode: Mode;
  /** The phase that a workflow or a person has set. Null: none. */
  phase: string | null;
  /** Open delegations of its agents, without the task that this conversation is the thread of. */
  openDelegations: number;
  /** Compactions of its agents' prompts. */
  compactions: CompactionState;
  /** The directive in run mode, with the present step. Absent in other modes and without a directive. */
  run?: Omit<Directive, 'steps'>;
}

export interface CompactionState extends Omit<CompactionBook, 'requested'> {
  /** Agents that compact before their next turn, because a person asked for it. */
  requested: AgentId[];
}

export function conversationState({
  directions,
  directives,
  tasks,
  open,
  compactions,
}: TaskBook): ConversationState {
  const { archived, phase } = directions;
  const mode = directions.mode ?? 'agent';
  const delegations = [...open].filter((id) => tasks.get(id)?.kind === 'delegation');
  const run = archived ? null : directiveOf(directions, directives);
  return {
    state: archived ? 'archived' : `open.${mode}`,
    mode,
    phase: phase?.phase ?? null,
    openDelegations: delegations.length,
    compactions: { ...compactions, requested: Object.keys(compactions.requested) as AgentId[] },
    ...(run && { run: withoutSteps(run) }),
  };
}

/** The log has the steps; they are not repeated here. */
function withoutSteps({ steps: _steps, ...directive }: Directive): Omit<Directive, 'steps'> {
  return directive;
}
