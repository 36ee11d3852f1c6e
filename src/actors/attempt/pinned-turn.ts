import { type PinnedTurn, type Event, isTaskEnd } from '../../events/index.ts';
import { type TurnInput, visibleText } from '../../context/index.ts';
import { isUnheard } from '../../machines/membership.ts';
import { foldTask, forkTaskFold, isDue, type TaskFold } from '../../machines/task-fold.ts';
import type { Folded } from '../log/read-log.ts';
import type { TurnRun } from './turn-run.ts';

type Steered = Pick<PinnedTurn, 'upTo' | 'steered'>;

/** The seq up to which a turn has taken its inputs. */
export function reachOf({ upTo, steered }: Steered): number {
  return steered?.at(-1)?.upTo ?? upTo;
}

/** The reach of a turn at one step, whose prompt never has inputs taken later, even when it is rendered again. */
export function reachAt({ upTo, steered = [] }: Steered, step: number): number {
  return steered.findLast((each) => each.step <= step)?.upTo ?? upTo;
}

/** The seqs of all inputs of a turn, in the order in which it took them. */
export function coversOf({ inputs, steered = [] }: Pick<PinnedTurn, 'inputs' | 'steered'>): number[] {
  return [...inputs, ...steered.flatMap((each) => each.inputs)];
}

/** How a turn's prompts are rendered. They are pinned with the turn: a later setting must not change what was sent. */
type PromptRules = Pick<TurnInput, 'peers' | 'framing' | 'sees'>;

/** The rules of an agent, or of a pinned or logged turn, without those that are absent. */
export function promptRulesOf({ peers, framing, sees }: PromptRules): PromptRules {
  return { ...(peers && { peers }), ...(framing && { framing }), ...(sees && { sees }) };
}

const PAGE = 1_000;

/**
 * The addressed events that are not settled, oldest first. An event with text that addresses the agent is pending until
 * its turn. The end of a task counts once its group is due, however old it is.
 */
export function triggersIn(
  { view, tasks }: { view: Pick<Folded['view'], 'agent' | 'pending'>; tasks: TaskFold },
  processed: number,
): Event[] {
  return view.pending.filter((event) => {
    if (!event.to.includes(view.agent) || isUnheard(tasks, view.agent, event)) return false;
    return isTaskEnd(event) && tasks.ended.has(event.seq) ? isDue(tasks, event.seq) : event.seq > processed;
  });
}

/** Whether another turn follows this one. Ends of task groups that the turn already answers begin none. */
export async function hasMore(run: TurnRun): Promise<boolean> {
  const { deps, live, turn } = run;
  const head = await deps.store.head(live.address);
  const reach = reachOf(turn);
  return head > reach && waitingAfter(run, await readUpTo(run, reach, head)).length > 0;
}

/** The events that would begin the next turn. `since`: all events of the log after the inputs of this turn. */
export function waitingAfter({ live, turn }: TurnRun, since: readonly Event[]): Event[] {
  const { agent } = live.address;
  const tasks = since.some(isOfTasks) ? foldedOn(live.tasks, since) : live.tasks;
  const given = new Set(coversOf(turn).map((seq) => tasks.ended.get(seq)?.group));
  const pending = [...live.view.pending, ...since.filter((event) => isFor(agent, event))];
  return triggersIn({ view: { agent, pending }, tasks }, reachOf(turn)).filter((event) => {
    const group = tasks.ended.get(event.seq)?.group;
    return event.kind !== 'approval.decided' && (group === undefined || !given.has(group));
  });
}

/** Whether an event may change which tasks are due or which agents take part. */
function isOfTasks(event: Event): boolean {
  return isTaskEnd(event) || event.kind === 'membership.changed';
}

export function isFor(agent: string, event: Event): boolean {
  return event.to.some((each) => each === agent) && visibleText(event) !== null;
}

function foldedOn(tasks: TaskFold, events: readonly Event[]): TaskFold {
  const fold = forkTaskFold(tasks);
  for (const event of events) foldTask(fold, event);
  return fold;
}

/** Read through the log, which has what this process appended in memory. */
export async function readUpTo(
  { deps, live }: Pick<TurnRun, 'deps' | 'live'>,
  after: number,
  head: number,
): Promise<Event[]> {
  const events: Event[] = [];
  for (let at = after; at < head;) {
    const page = await deps.log.read(live.address, { after: at, limit: PAGE });
    const last = page.at(-1);
    if (!last) break;
    events.push(...page.filter(({ seq }) => seq <= head));
    at = last.seq;
  }
  return events;
}
