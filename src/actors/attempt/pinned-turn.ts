import { type PinnedTurn, type Event, isTaskEnd } from '../../events/index.ts';
import { type TurnInput, visibleText } from '../../context/index.ts';
import { isUnheard } from '../../machines/membership.ts';
import { foldTask, forkTaskFold, isDue, type TaskFold } from '../../machines/task-fold.ts';
import type { Folded } from '../log/read-log.ts';
import type { TurnRun } from './turn-run.ts';

type Steered = Pick<PinnedTurn, 'upTo' | 'steered'>;

/** The seq up to which a turn has taken inputs. */
export function reachOf({ upTo, steered }: Steered): number {
  return steered?.at(-1)?.upTo ?? upTo;
}

/** The seq up to which a turn had taken inputs at one step. The prompt of that step never shows inputs taken later. */
export function reachAt({ upTo, steered = [] }: Steered, step: number): number {
  return steered.findLast((each) => each.step <= step)?.upTo ?? upTo;
}

/** The seqs of all inputs of a turn, in the order in which it took them. */
export function coversOf({ inputs, steered = [] }: Pick<PinnedTurn, 'inputs' | 'steered'>): number[] {
  return [...inputs, ...steered.flatMap((each) => each.inputs)];
}

/** How a turn's prompts are rendered. Pinned with the turn, because a changed setting must not change what was already sent. */
type PromptRules = Pick<TurnInput, 'peers' | 'framing' | 'sees'>;

/** The prompt rules of an agent, or of a pinned or logged turn, without absent fields. */
export function promptRulesOf({ peers, framing, sees }: PromptRules): PromptRules {
  return { ...(peers && { peers }), ...(framing && { framing }), ...(sees && { sees }) };
}

const PAGE = 1_000;

/**
 * The events that begin a turn, oldest first: unprocessed events with text that address the agent, and ends of tasks whose
 * group is due, however old they are.
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

/** Whether another turn follows this one. Ends of task groups that this turn already answers begin no other turn. */
export async function hasMore(run: TurnRun): Promise<boolean> {
  const { deps, live, turn } = run;
  const head = await deps.store.head(live.address);
  const reach = reachOf(turn);
  return head > reach && waitingAfter(run, await readUpTo(run, reach, head)).length > 0;
}

/** The events that would begin the next turn. `since`: all events in the log after the inputs of this turn. */
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

/** Reads events through the log, which has recent events of this process in memory. */
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
