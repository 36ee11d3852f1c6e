import type { Event, RunTime, TurnTimes } from '../../events/index.ts';
import { endOf, openingOf } from '../../machines/task-events.ts';
import { placeOf } from './row.ts';

/**
 * The times of a stretch of a log, in columns: a few bytes per event, so that a reader can hold those of the longest log.
 * The columns `ms`, `who` and `what` have one number per event, in order.
 */
export interface TimePage {
  /** Seq of the first event. Seqs have no gaps. */
  first: number;
  /** Time of the first event, ms since the epoch. */
  at: number;
  /** The difference to the event before. */
  ms: number[];
  /** Index in `agents`; -1 for what is about no agent. */
  who: number[];
  agents: string[];
  what: TimeMark[];
  /** The number of each turn that starts here, in order. */
  numbers: number[];
  threads: { seq: number; task: string; thread: string }[];
  /** Ends of delegated tasks. */
  ended: { seq: number; task: string }[];
  /** Only on request: where the turns that end here, and their tools, spent their time. */
  times: { seq: number; times: TurnTimes }[];
  tools: { seq: number; name: string; ran: RunTime }[];
}

/** What the timeline draws for an event. */
export const MARK = { other: 0, talk: 1, problem: 2, started: 3, done: 4, failed: 5, aborted: 6 } as const;
export type TimeMark = (typeof MARK)[keyof typeof MARK];

const TURN_MARKS: Readonly<Record<string, TimeMark>> = {
  'turn.started': MARK.started,
  'turn.done': MARK.done,
  'turn.failed': MARK.failed,
  'turn.aborted': MARK.aborted,
};

interface TimedEvent {
  agent: string | null;
  mark: TimeMark;
  /** For the start of a turn. */
  number: number;
}

/** Never throws, whatever the event has. */
function timedEvent(event: Event): TimedEvent {
  const { agent, level } = placeOf(event);
  const own = agent === null ? MARK.other : (TURN_MARKS[event.kind] ?? MARK.other);
  const mark = own || (level === 'talk' ? MARK.talk : level === 'problem' ? MARK.problem : MARK.other);
  return {
    agent,
    mark,
    number: mark === MARK.started ? Number(/:(\d+)$/.exec(event.turn ?? '')?.[1] ?? 0) : 0,
  };
}

/** Adds events to a page; they must follow those it has. */
export function addTimes(page: TimePage, events: readonly Event[], { parts }: { parts: boolean }): void {
  let before = page.at + page.ms.reduce((sum, each) => sum + each, 0);
  const known = new Map(page.agents.map((id, index) => [id, index]));
  for (const event of events) {
    const at = Number(event.at) || 0;
    if (page.ms.length === 0) {
      page.first = event.seq;
      page.at = before = at;
    }
    const { agent, mark, number } = timedEvent(event);
    if (agent !== null && !known.has(agent)) known.set(agent, page.agents.push(agent) - 1);
    page.ms.push(at - before);
    page.who.push(agent === null ? -1 : (known.get(agent) ?? -1));
    page.what.push(mark);
    if (mark === MARK.started) page.numbers.push(number);
    addTask(page, event);
    if (parts) addParts(page, event);
    before = at;
  }
}

export function emptyTimes(): TimePage {
  return {
    first: 0,
    at: 0,
    ms: [],
    who: [],
    agents: [],
    what: [],
    numbers: [],
    threads: [],
    ended: [],
    times: [],
    tools: [],
  };
}

function addTask(page: TimePage, event: Event): void {
  const { seq } = event;
  const opening = openingOf(event);
  if (opening?.kind === 'delegation')
    page.threads.push({ seq, task: opening.id, thread: opening.body.thread });
  const ending = endOf(event);
  if (ending && event.kind.startsWith('delegation')) page.ended.push({ seq, task: ending.id });
}

function addParts(page: TimePage, { seq, kind, body }: Event): void {
  if (kind === 'turn.done' || kind === 'turn.failed' || kind === 'turn.aborted') {
    if (body.times) page.times.push({ seq, times: body.times });
  } else if (kind === 'tool.result' && body.ran) {
    page.tools.push({ seq, name: body.name, ran: body.ran });
  }
}
