import { TroupeError } from '../../base/errors.ts';
import {
  type AgentId,
  canonicalJson,
  type Event,
  type EventOf,
  isAbout,
  parseExact,
  parseTurnId,
  runtimeId,
  type TenantId,
  type ToolCall,
  type ToolOutcome,
  type ConversationId,
  dispatchId,
  hasAuthority,
  isRuntimeId,
  isTaskEnd,
} from '../../events/index.ts';
import type { ConversationKey, Store } from '../../store/store.ts';
import { type LogFolds, readPages } from './read-log.ts';
import { endOf } from '../../machines/task-events.ts';
import type { ReadTasks } from './tasks.ts';

/** A turn as recorded in the log. */
export interface LoggedTurn {
  log: ConversationKey;
  agent: AgentId;
  number: number;
  started: EventOf<'turn.started'>;
  inputs: Event[];
  /** The events of the turn itself, in order. */
  own: Event[];
  /** Its ending; null while it runs. */
  end: Event | null;
}

/** Reads a turn from its log. Throws `turn_unknown`. */
export async function readTurn(store: Store, tenant: TenantId, turn: string): Promise<LoggedTurn> {
  const parts = parseTurnId(turn);
  const log = parts && { tenant, conversation: parts.conversation };
  const started = log && (await store.readById(log, runtimeId(turn, 'started')));
  if (!parts || !log || started?.kind !== 'turn.started')
    throw new TroupeError('turn_unknown', `there is no turn "${turn}"`, { turn });
  const inputs = await eventsAt({ store }, log, started.body.inputs);
  const own = await ownEvents(store, log, started);
  const last = own.at(-1);
  const end = last && isAbout(last, 'turnEnd') ? last : null;
  return { log, agent: started.author.id as AgentId, number: parts.number, started, inputs, own, end };
}

async function ownEvents(store: Store, log: ConversationKey, started: Event): Promise<Event[]> {
  const own: Event[] = [];
  for await (const page of readPages(store, log, { after: started.seq - 1 })) {
    for (const event of page) {
      if (event.turn !== started.turn) continue;
      own.push(event);
      if (isAbout(event, 'turnEnd')) return own;
    }
  }
  return own;
}

/** A call of a turn with its result. */
export interface LoggedCall {
  /** Index of its step, from 0. */
  step: number;
  call: ToolCall;
  /** Its result; null if the log has none. */
  result: { outcome: ToolOutcome; content: string; artifact?: string | undefined } | null;
}

/** The calls of a turn in their order. Ids of calls may repeat, so results are matched by their position. */
export function callsOf({ own }: Pick<LoggedTurn, 'own'>): LoggedCall[] {
  const calls: LoggedCall[] = [];
  let waiting: LoggedCall[] = [];
  for (const event of own) {
    if (!isAbout(event, 'turn')) continue;
    if (event.kind === 'step') {
      const { index: step, calls: asked } = event.body;
      waiting = asked.map((call): LoggedCall => ({ step, call, result: null }));
      calls.push(...waiting);
    } else if (event.kind === 'tool.result') {
      const { call: id, outcome, content, artifact } = event.body;
      const call = waiting.find((each) => each.call.id === id && each.result === null);
      if (call) call.result = { outcome, content, ...(artifact !== undefined && { artifact }) };
    }
  }
  return calls;
}

/** Whether two calls have the same tool and the same arguments, however these are written. */
export function isSameCall(a: ToolCall, b: ToolCall): boolean {
  return a.name === b.name && (a.args === b.args || comparable(a.args) === comparable(b.args));
}

function comparable(args: string): string {
  try {
    return canonicalJson(parseExact(args.trim() || '{}'));
  } catch {
    return args;
  }
}

interface Reader {
  store: Store;
  taskFolds: LogFolds<ReadTasks>;
}

/** Maximum steps back. The events found then count as the origins. */
const MOST_STEPS = 64;

/**
 * The events that began the work of a turn, oldest first. The search goes back from its inputs:
 *  A1  A message of a person, or of the runtime (a schedule), is an origin.
 *  A2  An event of an agent's turn, such as a handoff or a delegated task, leads to the inputs of that turn.
 *  A3  The end of a task leads to the inputs of the turn in which its owner opened the task, not to the one who ended it.
 *  A4  A repeated turn leads to the inputs of the turn that it repeats.
 *  A5  A held message that a person has passed on leads to the message of its author.
 *  A6  An event to which none of these applies is an origin, so that there is always one.
 *  A7  Without `leavesThread`, the task of a thread is an origin.
 */
export async function originsOf(
  deps: Reader,
  inputs: readonly Event[],
  { leavesThread = true } = {},
): Promise<Event[]> {
  const open = [...inputs];
  const origins = new Map<string, Event>();
  const seen = new Set<string>();
  for (let event = open.shift(); event; event = open.shift()) {
    const { tenant, conversation, seq } = event;
    const place = `${conversation}/${seq}`;
    if (seen.has(place)) continue;
    seen.add(place);
    const isLast =
      seen.size > MOST_STEPS ||
      (!leavesThread && event.kind === 'delegation.opened' && event.body.thread === conversation);
    const before = isLast ? [] : await causesOf(deps, { tenant, conversation }, event);
    if (before.length > 0) open.push(...before);
    else origins.set(place, event);
  }
  return [...origins.values()].sort((a, b) => a.at - b.at || a.seq - b.seq);
}

async function causesOf(deps: Reader, log: ConversationKey, event: Event): Promise<Event[]> {
  if (!hasAuthority(event)) return [];
  const { author, turn } = event;
  if (event.kind === 'delegation.opened' && event.body.thread === log.conversation)
    return openingOf(deps, log.tenant, event.body);
  if (isTaskEnd(event)) return ownOpening(deps, log, endOf(event)?.id);
  if (event.kind === 'command') return eventsAt(deps, log, event.body.inputs ?? []);
  if (event.kind === 'message' && author.kind === 'user') return heldBefore(deps, log, event);
  if (author.kind !== 'agent') return [];
  if (turn !== undefined) return inputsOf(deps, log, turn);
  // A message to the assignee of an open task has no turn in this log.
  const { thread } = (await deps.taskFolds.of(log)).fold;
  return thread && thread.opened.delegator === author.id ? openingOf(deps, log.tenant, thread.opened) : [];
}

/** The held message that this one passes on; none for other messages. */
async function heldBefore(
  { store }: Reader,
  log: ConversationKey,
  { id, replyTo }: EventOf<'message'>,
): Promise<Event[]> {
  if (replyTo === undefined || !isRuntimeId(id)) return [];
  const held = await store.readById(log, replyTo);
  // The id may be a spare one.
  return held && `${id}:`.startsWith(`${dispatchId(held)}:`) ? [held] : [];
}

function openingOf(
  deps: Reader,
  tenant: TenantId,
  { home, delegation }: { home: ConversationId; delegation: string },
): Promise<Event[]> {
  return ownOpening(deps, { tenant, conversation: home }, delegation);
}

async function ownOpening(deps: Reader, log: ConversationKey, id: string | undefined): Promise<Event[]> {
  const { fold } = await deps.taskFolds.of(log);
  const task = id === undefined ? undefined : fold.tasks.get(id);
  return task ? eventsAt(deps, log, [task.seq]) : [];
}

async function inputsOf(deps: Reader, log: ConversationKey, turn: string): Promise<Event[]> {
  const started = await deps.store.readById(log, runtimeId(turn, 'started'));
  return started?.kind === 'turn.started' ? eventsAt(deps, log, started.body.inputs) : [];
}

export async function eventsAt(
  { store }: Pick<Reader, 'store'>,
  log: ConversationKey,
  seqs: readonly number[],
): Promise<Event[]> {
  const pages = await Promise.all(seqs.map((seq) => store.read(log, { after: seq - 1, limit: 1 })));
  return pages.flat();
}
