import { TroupeError } from '../../base/errors.ts';
import { type Author, type CommandOf, type Event, runFactId } from '../../events/index.ts';
import { activeRuns, type Run } from '../../machines/run-book.ts';
import { isHere, type Participants } from '../../machines/participants.ts';
import { newWorkflow, nextState, stepOf } from '../../machines/workflow.ts';
import type { ConversationKey } from '../../store/store.ts';
import type { ConversationDeps } from '../conversations/conversation-deps.ts';
import type { Workflow } from '../turn/feature-types.ts';
import { requirePerson } from '../conversations/trust.ts';
import { phaseChange } from './change-phase.ts';
import { directedDrafts, modeDraft } from '../conversations/run-drafts.ts';

/**
 * Begins a run of a workflow for a person, or resumes one at a step. The turns of the agents do everything that follows.
 * Returns the event that directs the run; the same command again returns the same event.
 */
export async function startRun(
  conversations: ConversationDeps & { workflows: readonly Workflow[] },
  log: ConversationKey,
  command: CommandOf<'run'>,
  by: Author,
): Promise<Event> {
  requirePerson(conversations.trust, by, 'run workflows');
  const workflow = conversations.workflows.find(({ id }) => id === command.workflow);
  if (!workflow) {
    const known = conversations.workflows.map(({ id }) => id).join(', ') || 'none';
    throw refused(`there is no workflow "${command.workflow}". Known: ${known}.`);
  }
  const participants = await conversations.participantsCache.of(log);
  const { runs } = participants.tasks;
  const known = command.run === undefined ? undefined : runs.get(command.run);
  if (command.step === undefined && known) {
    const first = await conversations.deps.store.readById(log, firstIdOf(known.run));
    const isSame = known.workflow === workflow.id && known.directive === directiveFor(command, workflow);
    if (first && isSame) return first;
    throw refused(`there is already a run "${known.run}": resume it at a step, or choose another id`);
  }
  if (participants.tasks.directions.archived) {
    const message = `conversation ${log.conversation} is archived: reopen it first`;
    throw new TroupeError('conversation_archived', message, { conversation: log.conversation });
  }
  const run =
    command.step === undefined
      ? begun(conversations, command, workflow)
      : resumed([...runs.values()], { ...command, step: command.step }, workflow);
  const other = activeRuns(participants.tasks.runs).find((each) => each.run !== run.run);
  if (other) throw refused(`the run ${other.run} is at step ${other.state.context.number}: let it end first`);
  return direct(conversations, run, { log, by, participants });
}

function begun({ newId }: ConversationDeps, command: CommandOf<'run'>, workflow: Workflow): Run {
  const run = command.run ?? `${workflow.id}-${newId().slice(-8).toLowerCase()}`;
  const { steps } = workflow;
  const state = nextState(newWorkflow(), { type: 'BEGIN', steps, number: 1, attempt: 1 });
  return { run, workflow: workflow.id, directive: directiveFor(command, workflow), state };
}

/** Uses the present steps of the workflow, which may have been corrected. */
function resumed(
  runs: readonly Run[],
  command: CommandOf<'run'> & { step: string },
  { id, steps }: Workflow,
): Run {
  const run = runs.findLast(
    (each) => each.workflow === id && (command.run === undefined || each.run === command.run),
  );
  if (!run) throw refused(`"${id}" has no run${command.run ? ` "${command.run}"` : ''} to resume`);
  if (run.state.value === 'completed') throw refused(`the run ${run.run} is completed: begin another`);
  const number = steps.findIndex((step) => step.id === command.step) + 1;
  if (number === 0) {
    throw refused(
      `"${id}" has no step "${command.step}". Its steps: ${steps.map((step) => step.id).join(', ')}.`,
    );
  }
  const attempt = run.state.context.attempt + 1;
  const directive = command.directive ?? run.directive;
  return { ...run, directive, state: nextState(run.state, { type: 'BEGIN', steps, number, attempt }) };
}

async function direct(
  conversations: ConversationDeps,
  run: Run,
  { log, by, participants }: { log: ConversationKey; by: Author; participants: Participants },
): Promise<Event> {
  const { deps } = conversations;
  const step = stepOf(run.state.context);
  if (!step) throw refused(`"${run.workflow}" has no such step`);
  if (!isHere(participants, step.agent)) {
    const { agent } = step;
    throw refused(`@${agent}, whose step it is, takes no part here: let it join, or reinstate it`, { agent });
  }
  const { mode, run: named, phase } = participants.tasks.directions;
  const isNamed = mode === 'run' && named === run.run;
  const change = step.phase === undefined ? null : await phaseChange(deps, log, phase, { phase: step.phase });
  const drafts = [...(isNamed ? [] : [modeDraft(run, by)]), ...directedDrafts(run, change, by)];
  const appended = await deps.log.append(log, drafts);
  const directed = appended.find(({ event }) => event.kind === 'run.directive');
  if (!directed) throw new TroupeError('internal', 'the log did not return the appended event');
  return directed.event;
}

function directiveFor(command: CommandOf<'run'>, workflow: Workflow): string {
  const directive = command.directive ?? workflow.directive;
  if (directive === undefined)
    throw refused(`a run of "${workflow.id}" needs a directive: the workflow has none`);
  return directive;
}

function firstIdOf(run: string) {
  return runFactId({ run, part: 'directive', number: 1, attempt: 1 });
}

function refused(message: string, data: Record<string, unknown> = {}): TroupeError {
  return new TroupeError('command_refused', message, data);
}
