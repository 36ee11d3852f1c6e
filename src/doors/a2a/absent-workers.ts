import type { Absence } from './task-view.ts';
import type { TaskProgress } from './task-progress.ts';
import type { Troupe } from '../../library/troupe.ts';

const ABSENT = new Set(['paused', 'retired', 'failed']);

/** Those who are to work on a task and take no turns. Empty if somebody else works on it. */
export async function absentWorkers(
  troupe: Troupe,
  { workers, state }: Pick<TaskProgress, 'workers' | 'state'>,
): Promise<Absence[]> {
  if (state !== 'TASK_STATE_WORKING') return [];
  const statuses = new Map<string, Awaited<ReturnType<Troupe['actors']>>>();
  const absent = new Map<string, Absence>();
  for (const { agent, conversation } of workers) {
    const actors = statuses.get(conversation) ?? (await troupe.actors(conversation));
    statuses.set(conversation, actors);
    const status = actors.find((actor) => actor.agent === agent)?.status;
    // It waits for another of these.
    if (status === 'waiting') continue;
    if (status === undefined || !ABSENT.has(status)) return [];
    absent.set(agent, { agent, status });
  }
  return [...absent.values()];
}
