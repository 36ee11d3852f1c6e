import { MARK, type TimePage } from '../../../../src/library/projection/time-page.ts';
import type { TurnView } from '../../../../src/library/projection/model.ts';
import type { Marks, Part } from './spans.ts';

/** A turn, as far as the times of a log reveal it. */
export interface OldTurn {
  agent: string;
  number: number;
  status: TurnView['status'];
  seq: number;
  start: number;
  end: number | null;
  parts: Part[];
}

/** A task that an agent gave another, as far as the times of a log reveal it. */
export interface OldTask {
  id: string;
  owner: string;
  thread: string;
  seq: number;
  start: number;
  end: number | null;
}

/** What the times of a log reveal: its turns, and its events by agent; '' for people. Pages are added in order, without a gap. */
export interface LogTimes {
  readonly turns: OldTurn[];
  readonly tasks: Map<string, OldTask>;
  /** Times of all events, by seq. */
  readonly at: number[];
  /** Seq of the first event in `at`. */
  first: number;
  readonly marks: Map<string, Marks>;
  readonly running: Map<string, OldTurn>;
}

export function noTimes(): LogTimes {
  return { turns: [], tasks: new Map(), at: [], first: 1, marks: new Map(), running: new Map() };
}

/** The fewest of the newest pages that hold this many events; all if they hold fewer. */
export function newestPages(pages: readonly TimePage[], atLeast: number): TimePage[] {
  const kept: TimePage[] = [];
  for (let events = 0, index = pages.length - 1; index >= 0 && events < atLeast; index--) {
    const page = pages[index];
    if (page) kept.unshift(page);
    events += page?.ms.length ?? 0;
  }
  return kept;
}

const STATUS: Readonly<Record<number, TurnView['status']>> = {
  [MARK.done]: 'done',
  [MARK.failed]: 'failed',
  [MARK.aborted]: 'aborted',
};

export function addPage(times: LogTimes, page: TimePage): void {
  if (times.at.length === 0) times.first = page.first;
  const parts = partsByEnd(page);
  let time = page.at;
  let starts = 0;
  for (let index = 0; index < page.ms.length; index++) {
    time += page.ms[index] ?? 0;
    times.at.push(time);
    const seq = page.first + index;
    const agent = page.agents[page.who[index] ?? -1] ?? '';
    const mark = page.what[index] ?? MARK.other;
    if (mark === MARK.started) {
      const number = page.numbers[starts++] ?? 0;
      const turn: OldTurn = { agent, number, status: 'running', seq, start: time, end: null, parts: [] };
      times.turns.push(turn);
      times.running.set(agent, turn);
    } else if (mark >= MARK.done) {
      endTurn(times, agent, { status: STATUS[mark] ?? 'done', end: time, parts: parts(seq) });
    }
    if (mark === MARK.talk || mark === MARK.problem) addMark(times.marks, agent, { seq, time, mark });
    else if (mark === MARK.failed) addMark(times.marks, agent, { seq, time, mark: MARK.problem });
  }
  addTasks(times, page);
}

function addTasks(
  { tasks, at, first }: LogTimes,
  { threads, ended, who, agents, first: from }: TimePage,
): void {
  for (const { seq, task: id, thread } of threads) {
    const owner = agents[who[seq - from] ?? -1] ?? '';
    tasks.set(id, { id, owner, thread, seq, start: at[seq - first] ?? 0, end: null });
  }
  for (const { seq, task } of ended) {
    const open = tasks.get(task);
    if (open) open.end ??= at[seq - first] ?? null;
  }
}

function endTurn({ running }: LogTimes, agent: string, end: Pick<OldTurn, 'status' | 'end' | 'parts'>): void {
  const turn = running.get(agent);
  if (turn) Object.assign(turn, end);
  running.delete(agent);
}

function addMark(
  marks: Map<string, Marks>,
  agent: string,
  { seq, time, mark }: { seq: number; time: number; mark: Marks['mark'][number] },
): void {
  let lane = marks.get(agent);
  if (!lane) marks.set(agent, (lane = { seq: [], at: [], mark: [] }));
  lane.seq.push(seq);
  lane.at.push(time);
  lane.mark.push(mark);
}

/** The parts of each turn, by the seq of its end. In the log, a turn's tools come before its end. */
function partsByEnd({ times, tools }: TimePage): (end: number) => Part[] {
  const byEnd = new Map(times.map(({ seq, times: each }) => [seq, each]));
  return (end) => {
    const own = byEnd.get(end);
    if (!own) return [];
    const parts = own.parts.map(([kind, start, ms]): Part => {
      const from = own.from + start;
      return { kind, start: from, end: from + ms, name: '', isFailed: false };
    });
    const last = own.parts.reduce((most, [, start, ms]) => Math.max(most, own.from + start + ms), own.from);
    const ran = tools
      .filter(({ seq, ran: { at } }) => seq < end && at >= own.from && at <= last)
      .map(({ name, ran }): Part => ({
        kind: 'tool',
        start: ran.at,
        end: ran.at + ran.ms,
        name,
        isFailed: false,
      }));
    return [...parts, ...ran];
  };
}
