import { Cron } from 'croner';
import * as z from 'zod';
import type { Schedule } from '../actors/conversations/upkeep.ts';
import { AgentId, ConversationId } from '../events/index.ts';

/** What is said to an agent at certain times. */
const ScheduleSettings = z.strictObject({
  /** Tells schedules apart: under another name it is another one. */
  name: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/, 'a name is 1 to 64 of A-Z a-z 0-9 _ -'),
  /** Minute, hour, day of the month, month, day of the week; or @daily and the like. */
  cron: z.string().min(1).max(200),
  /** As `Europe/Berlin`. Default UTC. */
  timezone: z.string().min(1).optional(),
  conversation: ConversationId,
  to: AgentId,
  content: z.string().min(1),
});
export const Schedules = z.array(ScheduleSettings).max(1_000);
export type Schedules = z.infer<typeof Schedules>;

export function schedulesOf(settings: Schedules): Schedule[] {
  return settings.map(({ name, cron, timezone, conversation, to, content }) => {
    const times = timesOf(cron, timezone);
    return {
      name,
      conversation,
      to,
      content,
      lastBy: (now) => lastBy(times, now),
    };
  });
}

function timesOf(cron: string, timezone = 'UTC'): Cron {
  return new Cron(cron, { timezone, mode: '5-part' });
}

/** `previousRuns` looks before a time, so that time itself is looked for from a little later. */
function lastBy(times: Cron, now: number): number | null {
  return times.previousRuns(1, new Date(now + 1))[0]?.getTime() ?? null;
}

/** A time that never comes, a zone that is none, an agent that nobody is. */
export function* scheduleProblems(
  settings: unknown,
  isKnown: (agent: string) => boolean,
): Generator<{ path: PropertyKey[]; message: string }> {
  const sketch = z
    .array(
      z
        .object({
          name: z.string().optional().catch(undefined),
          cron: z.string().optional().catch(undefined),
          timezone: z.string().optional().catch(undefined),
          to: z.string().optional().catch(undefined),
        })
        .catch({}),
    )
    .catch([])
    .parse(settings);
  for (const [index, { name, cron, timezone, to }] of sketch.entries()) {
    const path = ['schedules', index];
    if (name !== undefined && sketch.findIndex((each) => each.name === name) !== index)
      yield { path: [...path, 'name'], message: `"${name}" is used twice` };
    if (to !== undefined && !isKnown(to))
      yield { path: [...path, 'to'], message: `there is no agent "${to}"` };
    const isZone = timezone === undefined || isTimezone(timezone);
    if (!isZone) yield { path: [...path, 'timezone'], message: `"${timezone}" is no time zone` };
    const problem = cron === undefined ? null : cronProblem(cron);
    if (problem !== null) yield { path: [...path, 'cron'], message: problem };
  }
}

function isTimezone(timeZone: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone });
    return true;
  } catch {
    // It says so by throwing.
    return false;
  }
}

/** In UTC, where every minute comes; from a fixed time, so that a file is good or not whenever it is read. */
const FROM = new Date('2000-01-01T00:00:00Z');

function cronProblem(cron: string): string | null {
  try {
    return timesOf(cron).nextRun(FROM) === null ? `"${cron}" never comes` : null;
  } catch (error) {
    return error instanceof Error ? error.message.replace(/^Cron\w+: /, '') : String(error);
  }
}
