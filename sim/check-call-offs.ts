import { type Event, eventOf } from '../src/events/index.ts';
import type { World } from './world.ts';

/**
 * D6: who looks after a task was called off asks no model for it, nor for any part of it. A process may have looked
 * before and ask after, once in a turn: it looks again before each further step, and before it goes on with a turn of
 * another. What people say in threads is answered, but here they say nothing there.
 */
export function checkCallOffs({ asked, calledOff }: World, events: readonly Event[]): string[] {
  if (calledOff.length === 0) return [];
  const paths = pathsOf(events);
  return calledOff.flatMap(({ task, after }) => {
    const later = asked.slice(after).filter(({ turn }) => paths.get(turn)?.has(task));
    const counts = Map.groupBy(later, ({ process, turn }) => `${process} ${turn}`);
    return [...counts].flatMap(([who, calls]) =>
      calls.length > 1 ? [`D6 ${who} asked ${calls.length} times after ${task} was called off`] : [],
    );
  });
}

/** By turn of a thread: the task that it was for, and those that this is part of. */
function pathsOf(events: readonly Event[]): Map<string, Set<string>> {
  const openings = Map.groupBy(
    events.flatMap((event) => eventOf(event, 'delegation.opened') ?? []),
    ({ conversation }) => conversation,
  );
  const paths = new Map<string, Set<string>>();
  for (const event of events) {
    const started = eventOf(event, 'turn.started');
    if (!started?.turn) continue;
    const given = openings
      .get(event.conversation)
      ?.findLast(({ body, seq }) => body.thread === event.conversation && seq <= started.body.upTo);
    if (!given) continue;
    const { delegation, within = [] } = given.body;
    paths.set(started.turn, new Set([...within.map((place) => place.delegation), delegation]));
  }
  return paths;
}
