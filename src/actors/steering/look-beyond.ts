import { visibleText } from '../../context/index.ts';
import { type Event, isTaskEnd } from '../../events/index.ts';
import { foldTask, forkTaskBook, type TaskBook } from '../../machines/task-book.ts';
import type { AgentRuntime } from '../engine/agent-runtime.ts';
import { triggersIn } from '../turn/pin-turn.ts';
import type { TurnRun } from '../turn/turn-run.ts';
import { busyPolicyOf } from './busy-policy.ts';
import { coversOf, reachOf } from '../turn/reach.ts';

/** Events that have come for an agent at work. */
export type Beyond =
  | { kind: 'nothing' }
  | { kind: 'interrupt' }
  /** Oldest first, never empty. */
  | { kind: 'steer'; inputs: Event[] };

const NOTHING: Beyond = { kind: 'nothing' };
const PAGE = 1_000;
/** Events that need a new turn: a running turn cannot take them in. */
const BEGINS_A_TURN: readonly Event['kind'][] = ['handoff', 'delegation.opened', 'command'];

/**
 * Finds events after the inputs of a running turn that must not wait for the next turn. Nothing is folded, so the next turn
 * finds the events that are not taken. Costs one read of the head if nothing is new.
 */
export async function lookBeyond(run: TurnRun): Promise<{ seen: number; found: Beyond }> {
  const { deps, live, steer } = run;
  const head = await deps.store.head(live.address);
  if (head <= steer.seen) return { seen: steer.seen, found: NOTHING };
  return { seen: head, found: await findBeyond(run, head) };
}

async function findBeyond(run: TurnRun, head: number): Promise<Beyond> {
  const { live, turn, runtime, steer } = run;
  const { agent } = live.address;
  const fresh = await readUpTo(run, steer.seen, head);
  if (!fresh.some((event) => isFor(agent, event) && cannotWait(event, runtime))) return NOTHING;
  const reach = reachOf(turn);
  const waiting = waitingAfter(run, steer.seen === reach ? fresh : await readUpTo(run, reach, head));
  if (waiting.some((event) => busyPolicyOf(event, runtime) === 'interrupt')) return { kind: 'interrupt' };
  const barrier = waiting.findIndex(({ kind }) => BEGINS_A_TURN.includes(kind));
  const open = barrier === -1 ? waiting : waiting.slice(0, barrier);
  const last = open.findLastIndex((event) => busyPolicyOf(event, runtime) === 'steer');
  return last === -1 ? NOTHING : { kind: 'steer', inputs: open.slice(0, last + 1) };
}

/** Whether an event after the inputs of a turn interrupts it. */
export async function isInterrupted(run: TurnRun): Promise<boolean> {
  const { deps, live, turn, runtime } = run;
  const head = await deps.store.head(live.address);
  const since = await readUpTo(run, reachOf(turn), head);
  return waitingAfter(run, since).some((event) => busyPolicyOf(event, runtime) === 'interrupt');
}

/** Whether another turn follows this one. Ends of task groups that the turn already answers begin none. */
export async function hasMore(run: TurnRun): Promise<boolean> {
  const { deps, live, turn } = run;
  const head = await deps.store.head(live.address);
  const reach = reachOf(turn);
  return head > reach && waitingAfter(run, await readUpTo(run, reach, head)).length > 0;
}

/** The events that would begin the next turn. `since`: all events of the log after the inputs of this turn. */
function waitingAfter({ live, turn }: TurnRun, since: readonly Event[]): Event[] {
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
  return isTaskEnd(event) || event.kind === 'left' || event.kind === 'joined';
}

function cannotWait(event: Event, runtime: AgentRuntime): boolean {
  const policy = busyPolicyOf(event, runtime);
  return policy === 'steer' || policy === 'interrupt';
}

function isFor(agent: string, event: Event): boolean {
  return event.to.some((each) => each === agent) && visibleText(event) !== null;
}

function foldedOn(tasks: TaskBook, events: readonly Event[]): TaskBook {
  const book = forkTaskBook(tasks);
  for (const event of events) foldTask(book, event);
  return book;
}

/** Read through the log, which has what this process appended in memory. */
async function readUpTo(
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
