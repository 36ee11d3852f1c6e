import type { AgentId, Mode, ActorRecord, ConversationId } from '../../events/index.ts';
import { type Directive, directiveOf } from '../../machines/directions.ts';
import type { CompactionFold } from '../../machines/compaction-fold.ts';
import { type TaskFold, isDue } from '../../machines/task-fold.ts';
import { TroupeError } from '../../base/errors.ts';
import type { ConversationKey } from '../../store/store.ts';
import type { EngineDeps } from '../actor/engine-deps.ts';
import { type ReadTasks, type TaskInfo, tasksIn } from '../log/tasks.ts';

/** State of a conversation, from its task fold. */
export interface ConversationState {
  /** `archived`, or `open.` and the mode. */
  state: 'archived' | `open.${Mode}`;
  /** The mode; while archived, the mode after reopening. */
  mode: Mode;
  /** The phase that a workflow or a person has set; null without one. */
  phase: string | null;
  /** Number of open delegations of its agents. Does not count the task of which this conversation is the thread. */
  openDelegations: number;
  /** Compactions of its agents' prompts. */
  compactions: CompactionState;
  /** The directive in run mode, with the present step. Absent in other modes and without a directive. */
  run?: Omit<Directive, 'steps'>;
}

interface CompactionState extends Omit<CompactionFold, 'requested'> {
  /** Agents that compact before their next turn, because a person asked for it. */
  requested: AgentId[];
}

export function conversationState({
  directions,
  directives,
  tasks,
  open,
  compactions,
}: TaskFold): ConversationState {
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

/** The directive without its steps, which are in the log. */
function withoutSteps({ steps: _steps, ...directive }: Directive): Omit<Directive, 'steps'> {
  return directive;
}

/** A task on which no agent works: it waits for a person, or for an agent that takes no turns. */
export interface Wait {
  /** Id of the task's conversation: the given one or a thread of it. */
  conversation: ConversationId;
  /** The question, approval or delegation. */
  task: TaskInfo;
}

/** The open work in a conversation and in the threads of its open tasks. */
export interface Work {
  /** Whether an agent has something to do there, or something changed while it was read. */
  isUnderWay: boolean;
  /** The innermost open tasks on which no agent works. */
  waits: Wait[];
}

type WorkDeps = Pick<EngineDeps, 'agents' | 'store' | 'clock' | 'taskFolds'>;

/** Maximum depth that is followed. A troupe's own limit may be raised, and an imported log may contain anything. */
const MAX_DEPTH = 16;

/**
 * Reads the records of the actors, not their machines, so the result covers turns of every process. `after`: only tasks that
 * were opened in the conversation after this event count.
 *  W1  An actor appends its events before they leave its record, and threads are read before the conversation that gave their
 *      tasks. So work that moves from one to another during the reads is seen in one of the two, or as a longer log.
 */
export async function workIn(
  deps: WorkDeps,
  root: ConversationKey,
  { after = 0 }: { after?: number } = {},
): Promise<Work> {
  const seen = new Set<ConversationId>();

  async function look(log: ConversationKey, depth: number): Promise<Work> {
    seen.add(log.conversation);
    const read = await deps.taskFolds.of(log);
    const { upTo } = read.fold;
    const open = tasksIn(read, { open: true }).filter((task) => depth > 0 || task.openedAt.seq > after);
    const below = await Promise.all(open.map((task) => lookBelow(log, task, depth)));
    const isUnderWay =
      below.some((work) => work.isUnderWay) ||
      (await isAnyoneAtWork(deps, log, read)) ||
      (await deps.store.head(log)) > upTo;
    return { isUnderWay, waits: below.flatMap(({ waits }) => waits) };
  }

  async function lookBelow(log: ConversationKey, task: TaskInfo, depth: number): Promise<Work> {
    const waits = [{ conversation: log.conversation, task }];
    const { thread } = task;
    if (thread === undefined || seen.has(thread) || depth >= MAX_DEPTH) return { isUnderWay: false, waits };
    const below = await look({ ...log, conversation: thread }, depth + 1);
    return below.isUnderWay || below.waits.length > 0 ? below : { ...below, waits };
  }

  return look(root, 0);
}

async function isAnyoneAtWork(
  { agents, store, clock }: WorkDeps,
  log: ConversationKey,
  { fold, addressed }: ReadTasks,
): Promise<boolean> {
  const processed = new Map<AgentId, number>();
  for (const record of await store.listActors(log)) {
    // An agent with an unreadable record takes no turns, nor does one that is paused, failed or retired.
    if ('address' in record) processed.set(record.address.agent, Infinity);
    else if (record.parked !== null) processed.set(record.agent, Infinity);
    else if (isBegun(record, clock.now()) && agents.has(record.agent)) return true;
    else processed.set(record.agent, record.processed);
  }
  const unread = await Promise.all(
    [...addressed].map(async ([agent, last]) => {
      const after = processed.get(agent) ?? 0;
      if (last <= after || !agents.has(agent)) return false;
      const seqs = await store.addressed({ ...log, agent }, { after, upTo: last });
      // The end of a task begins no turn before its group is due.
      return seqs.some((seq) => !fold.ended.has(seq) || isDue(fold, seq));
    }),
  );
  return unread.includes(true);
}

/** Whether the record has a pinned turn, events to append, or an ended timer. */
function isBegun({ turn, unpublished, timers }: ActorRecord, now: number): boolean {
  return turn !== null || unpublished || timers.some(({ at }) => at <= now);
}

/** Pauses between two reads of a conversation, ms: the first one, and the maximum. */
const FIRST_PAUSE_MS = 5;
const LONGEST_PAUSE_MS = 100;

/** Resolves when no agent works in a conversation and its threads. Throws `shutting_down` if the troupe is closed meanwhile. */
export async function waitUntilRest(
  deps: WorkDeps,
  log: ConversationKey,
  closed: AbortSignal,
): Promise<void> {
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(LONGEST_PAUSE_MS, pauseMs * 1.5)) {
    if (!(await workIn(deps, log)).isUnderWay) return;
    await deps.clock.sleep(pauseMs, closed);
    // Not read again, because the store may be closed by now.
    if (closed.aborted) throw new TroupeError('shutting_down', 'the troupe is being closed');
  }
}
