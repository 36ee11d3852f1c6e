import { type Event, eventOf } from '../src/events/index.ts';
import type { World } from './world.ts';

/**
 * D6: once a process has seen that a task is cancelled, it asks no model for the task or for any of its subtasks. Each
 * process may ask once more per turn, because it may have checked just before the cancellation: it checks again before
 * each further step and before it continues another process's turn. Messages of people in threads are still answered,
 * but no schedule contains any.
 */
export function checkCancelledTasks({ asked, cancelledTasks }: World, events: readonly Event[]): string[] {
  if (cancelledTasks.length === 0) return [];
  const paths = pathsOf(events);
  return cancelledTasks.flatMap(({ task, after }) => {
    const later = asked.slice(after).filter(({ turn }) => paths.get(turn)?.has(task));
    const counts = Map.groupBy(later, ({ process, turn }) => `${process} ${turn}`);
    return [...counts].flatMap(([asker, calls]) =>
      calls.length > 1 ? [`D6 ${asker} asked ${calls.length} times after ${task} was cancelled`] : [],
    );
  });
}

/** Per turn of a thread: the task that it works on, and the tasks that contain this one. */
function pathsOf(events: readonly Event[]): Map<string, Set<string>> {
  const openings = Map.groupBy(
    events.flatMap((event) => eventOf(event, 'delegation.opened') ?? []),
    ({ conversation }) => conversation,
  );
  const paths = new Map<string, Set<string>>();
  for (const event of events) {
    const started = eventOf(event, 'turn.started');
    if (!started?.turn) continue;
    const opening = openings
      .get(event.conversation)
      ?.findLast(({ body, seq }) => body.thread === event.conversation && seq <= started.body.upTo);
    if (!opening) continue;
    const { delegation, within = [] } = opening.body;
    paths.set(started.turn, new Set([...within.map((place) => place.delegation), delegation]));
  }
  return paths;
}
