import type { Event, EventOf } from '../../src/events/index.ts';
import { asks, modelOf, says, type TestModel } from './engine-models.ts';
import type { Stage } from './engine-stage.ts';

export const ENOUGH = 'that is enough';

/** Delegates `fanOut` tasks to an agent of its own kind at every request, until a person stops it. */
export function bomb(fanOut: number, to = 'bo'): TestModel {
  let count = 0;
  return modelOf(async function* ({ messages }) {
    const last = messages.findLast(({ role }) => role === 'user')?.content ?? '';
    if (last.includes(ENOUGH)) return yield* says('as you wish');
    const task = () => ({ to, force: true, task: `part ${(count += 1)}` });
    yield* asks(...Array.from({ length: fanOut }, () => ['delegate', task()] as [string, unknown]));
  });
}

/** All events of all conversations of a stage. */
export async function everything({ store }: Stage): Promise<Event[]> {
  const known = await store.conversations('default' as Event['tenant'], 100_000);
  const logs = await Promise.all(
    known.map(({ id }) =>
      store.read({ tenant: 'default' as Event['tenant'], conversation: id }, { after: 0 }),
    ),
  );
  return logs.flat();
}

/** The tasks that were opened, each in the log of its owner. */
export function given(events: readonly Event[]): EventOf<'delegation.opened'>[] {
  return events.filter(
    (event) => event.kind === 'delegation.opened' && event.body.home === event.conversation,
  ) as EventOf<'delegation.opened'>[];
}

/** The tasks that have no end in that log. */
export function stillOpen(events: readonly Event[]): string[] {
  const ended = new Set(
    events.flatMap((event) =>
      event.kind === 'delegation.ended' ? [`${event.conversation}/${event.body.delegation}`] : [],
    ),
  );
  return given(events).flatMap(({ conversation, body }) =>
    ended.has(`${conversation}/${body.delegation}`) ? [] : [body.delegation],
  );
}

/** The largest number of simultaneously open tasks, as seen by this process. */
export function countOpen(stage: Stage): { most: number; made: number } {
  const counted = { most: 0, made: 0 };
  const open = new Set<string>();
  stage.troupe.watch((note) => {
    if (note.type !== 'event') return;
    const { event } = note;
    if (event.kind === 'delegation.opened' && event.body.home === event.conversation) {
      open.add(event.body.delegation);
      counted.made += 1;
      counted.most = Math.max(counted.most, open.size);
    }
    if (event.id.endsWith(':end') && event.kind === 'delegation.ended') open.delete(event.body.delegation);
  });
  return counted;
}
