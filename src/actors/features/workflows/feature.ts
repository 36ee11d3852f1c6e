import type { Feature, TurnRun } from '../../attempt/turn-run.ts';
import { TroupeError } from '../../../base/errors.ts';
import {
  type Author,
  type CommandOf,
  type Event,
  runFactId,
  type EventDraft,
  type OutgoingEvent,
  runtimeId,
  type PhaseChangedBody,
} from '../../../events/index.ts';
import {
  activeRuns,
  type Run,
  isStepNote,
  isWith,
  directedDrafts,
  modeDraft,
  completedDrafts,
  failedDrafts,
} from '../../../machines/run-fold.ts';
import { isHere, type Participants, openTasks } from '../../../machines/task-fold.ts';
import { newWorkflow, nextState, stepOf, type WorkflowEvent } from '../../../machines/workflow.ts';
import type { ConversationKey } from '../../../store/store.ts';
import { type ConversationDeps, appendLast } from '../../conversations/messages.ts';
import type { Workflow } from '../../attempt/feature-types.ts';
import { requirePerson, type EngineDeps } from '../../actor/engine-deps.ts';
import { isSuperseded, openedBy } from '../../tasks/task-ends.ts';
import { reachOf } from '../../attempt/pinned-turn.ts';
import { phaseSteps } from '../../../context/extract/handoff.ts';
import type { Phase } from '../../../machines/directions.ts';
import { inSlices, readNewest } from '../../log/read-log.ts';

export const workflows: Feature = {
  open: () => ({ workflows: { advance: advanceRuns } }),
  commands: { phase: changePhase, run: startRun },
};

/**
 * Begins a run of a workflow for a person, or resumes one at a step. The agents' turns advance it from then on.
 * Returns the event that directs the run. A repeated command returns the same event.
 */
async function startRun(
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

/** The run resumed with the present steps of the workflow, which may have been corrected. */
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

/**
 * The events by which a turn that ends a step advances its runs: the next step, or the end of the run. They are part of the
 * turn's commit, so no process needs to watch a run, and each step is requested once.
 */
async function advanceRuns(turn: TurnRun): Promise<OutgoingEvent[]> {
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
  return state.value === 'directed' ? directStep(turn, { ...run, state }) : [];
}

/** The event for the run; null if the agent waits, or was interrupted and continues with the new message. */
function eventOf(turn: TurnRun): WorkflowEvent | null {
  const { ending, live, outputs } = turn;
  if (ending.kind === 'failed') return { type: 'FAIL' };
  if (ending.kind === 'aborted') return ending.by === 'interrupted' ? null : { type: 'FAIL' };
  const open = openTasks(live.tasks, live.address.agent).filter((task) => !isSuperseded(turn)(task));
  const isElsewhere = outputs.some(({ kind }) => kind === 'handoff');
  return open.length + openedBy(turn) > 0 || isElsewhere ? null : { type: 'DONE' };
}

async function directStep(turn: TurnRun, run: Run): Promise<EventDraft[]> {
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

const MOST_TRIES = 10;

/**
 * Begins a phase, or changes its instructions, for a person. The id of a change is derived from the change before it, so of
 * two concurrent changes the second applies to the result of the first. A repeated change returns its event.
 */
async function changePhase(
  { deps, participantsCache, trust }: ConversationDeps,
  log: ConversationKey,
  command: CommandOf<'phase'>,
  by: Author,
): Promise<Event> {
  requirePerson(trust, by, 'change the phase');
  for (let tries = 1; ; tries++) {
    const before = (await participantsCache.of(log)).tasks.directions.phase;
    const body = await phaseChange(deps, log, before, command);
    if (!body) return present(deps.store, log, before?.seq ?? 0);
    const id = runtimeId('phase', before?.seq ?? 0);
    try {
      const draft = { id, author: by, to: [], kind: 'phase.changed' as const, body };
      return (await appendLast(deps, log, [draft])).event;
    } catch (error) {
      const isTaken = error instanceof TroupeError && error.code === 'event_conflict';
      if (!isTaken || tries === MOST_TRIES) throw error;
    }
  }
}

async function present(
  store: ConversationDeps['deps']['store'],
  log: ConversationKey,
  seq: number,
): Promise<Event> {
  const [event] = await store.read(log, { after: seq - 1, upTo: seq, limit: 1 });
  if (!event) throw new TroupeError('internal', `the log has no event ${seq}`);
  return event;
}

/** Maximum events, the last ones of a phase, from which a summary is made. */
const RECENT_EVENTS = 500;

interface PhaseWish {
  phase: string;
  instructions?: string | undefined;
  summarise?: boolean | undefined;
  unstored?: readonly Event[] | undefined;
}

/**
 * The change from the present phase to the wanted one; null if they are the same. The old phase is summarised if another one
 * replaces it and an agent has spoken in it. `unstored`: events of the phase that are not in the log yet.
 */
async function phaseChange(
  { store, clock, trust = null }: Pick<EngineDeps, 'store' | 'clock' | 'trust'>,
  log: ConversationKey,
  before: Phase | null,
  { phase, instructions = '', summarise, unstored = [] }: PhaseWish,
): Promise<PhaseChangedBody | null> {
  if (before?.phase === phase && before.instructions === instructions) return null;
  const isOther = before !== null && before.phase !== phase;
  const body = { phase, instructions, ...(isOther && { from: before.phase }) };
  if (!(summarise ?? isOther)) return body;
  const head = await store.head(log);
  const after = Math.max(before?.seq ?? 0, head - RECENT_EVENTS);
  const events = await readNewest(store, log, { after, upTo: head, limit: RECENT_EVENTS });
  const summary = await inSlices(clock, phaseSteps([...events, ...unstored], trust));
  return summary ? { ...body, summary } : body;
}
