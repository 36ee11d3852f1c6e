import type { Hono } from 'hono';
import type { Clock } from '../../clock.ts';
import type { Troupe } from '../../troupe.ts';
import { readOverview } from '../overview.ts';
import type { ProjectionBook } from '../projection-book.ts';
import { scanRows } from '../scan-rows.ts';
import { OverviewQuery, parseInput, RowsQuery, SearchQuery, SnapshotQuery } from '../schemas.ts';
import { searchConversations } from '../search-conversations.ts';

/** What the inspector's page is made of. Everything is read from the log; nothing here changes anything. */
export function addInspectorRoutes(
  app: Hono,
  troupe: Troupe,
  { clock, book }: { clock: Clock; book: ProjectionBook },
): void {
  app.get('/api/overview', async (context) => {
    const { limit } = parseInput(OverviewQuery, context.req.query(), 'the query');
    return context.json(await readOverview(troupe, book, clock, limit));
  });

  app.get('/api/conversations/:c/snapshot', async (context) => {
    const conversation = context.req.param('c');
    const { at } = parseInput(SnapshotQuery, context.req.query(), 'the query');
    if (at !== undefined) {
      const { projection, head } = await book.at(conversation, at);
      return context.json({ seq: projection.seq, head, projection, actors: [] });
    }
    const projection = await book.latest(conversation);
    const actors = await troupe.actors(conversation);
    return context.json({ seq: projection.seq, head: projection.seq, projection, actors });
  });

  app.get('/api/conversations/:c/rows', async (context) => {
    const { agent, kind, q, ...rest } = parseInput(RowsQuery, context.req.query(), 'the query');
    const request = { ...rest, agents: agent, kinds: kind, query: q };
    return context.json(await scanRows(troupe, context.req.param('c'), request));
  });

  app.get('/api/search', async (context) => {
    const { q, limit } = parseInput(SearchQuery, context.req.query(), 'the query');
    return context.json(await searchConversations(troupe, clock, { query: q, limit }));
  });
}
