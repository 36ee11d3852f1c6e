import type { Event } from '../src/events/index.ts';
import { realLogs } from '../test/support/real-logs.ts';
import { timedLog } from './timed-log.ts';

/** Every file of `../shared/data`. */
export const DATA_FILES = [
  'pi-large-session.jsonl',
  'tau/gpt-4o-airline-60.json',
  'tau/tau-airline-few_shot.jsonl',
  'tau/tau-retail-few_shot.jsonl',
  'claude-code/edge_cases.jsonl',
  'claude-code/representative_messages.jsonl',
  'claude-code/session_b.jsonl',
  'claude-code/todowrite_examples.jsonl',
  'locomo/26.json',
  'locomo/30.json',
  'locomo/41.json',
] as const;

/** The only long session in which an agent works with tools for hours. */
export const SESSION = 'pi-large-session.jsonl';
export const NO_DATA = 'no ../shared/data';

const QUICK_LOGS = 8;

/** Each conversation of a file with its name; with `quick` only the first ones. */
export async function namedLogs(file: string, quick: boolean): Promise<[name: string, log: Event[]][]> {
  const logs = await realLogs(file);
  return logs
    .slice(0, quick ? QUICK_LOGS : logs.length)
    .map((log, index) => [logs.length === 1 ? file : `${file}#${index}`, log]);
}

const PAUSE_MS = 20_000;

/** Concatenates the logs as one conversation, repeatedly, until it has `most` events. Ids are unique. */
export function chained(logs: readonly (readonly Event[])[], most: number): Event[] {
  const all: Event[] = [];
  for (let round = 0; all.length < most; round++) {
    for (const log of logs) {
      const shift = (all.at(-1)?.at ?? 0) + PAUSE_MS - (log[0]?.at ?? 0);
      for (const event of log) {
        if (all.length === most) return all;
        const seq = all.length + 1;
        all.push({ ...event, id: `${event.id}.${round}` as Event['id'], seq, at: event.at + shift });
      }
    }
  }
  return all;
}

/** The long session `times` over, at its original pace. */
export async function repeatedSession(times: number): Promise<Event[]> {
  const log = await timedLog(SESSION);
  return chained([log], log.length * times);
}
