import type { Event } from '../../events/index.ts';
import type { Projection } from '../../library/projection/model.ts';
import { renderHtml } from '../../library/projection/render-html.ts';
import type { Troupe } from '../../library/troupe.ts';
import { createProjectionCache, type ProjectionCache } from '../projection-caches.ts';

const PAGE = 500;

/** Renders a conversation up to its current head as one HTML file. Throws `conversation_unknown` before the first part. */
export async function* exportHtml(
  troupe: Pick<Troupe, 'events'>,
  conversation: string,
  cache: ProjectionCache = createProjectionCache(troupe),
): AsyncGenerator<string, void> {
  const projection = await cache.latest(conversation);
  yield* renderHtml(projection, eventsOf(troupe, projection));
}

async function* eventsOf(
  troupe: Pick<Troupe, 'events'>,
  { conversation, seq }: Projection,
): AsyncGenerator<Event, void> {
  for (let after = 0; after < seq;) {
    const { events } = await troupe.events(conversation, { after, limit: Math.min(PAGE, seq - after) });
    if (events.length === 0) return;
    yield* events;
    after = events.at(-1)?.seq ?? seq;
  }
}
