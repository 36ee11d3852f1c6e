import type { Hono } from 'hono';
import type { Clock } from '../../clock.ts';
import { troupeOf } from '../access/caller.ts';
import type { BookOf } from '../access/projection-books.ts';
import { readOverview } from '../overview.ts';
import { scanRows } from '../scan-rows.ts';
import { OverviewQuery, parseInput, RowsQuery, SearchQuery, SnapshotQuery } from '../schemas.ts';
import { searchConversations } from '../search-conversations.ts';

/** What the inspector's page is made of. Everything is read from the log; nothing here changes anything. */
export function addInspectorRoutes(app: Hono, { clock, bookOf }: { clock: Clock; bookOf: BookOf }): void {
  app.get('/api/overview', async (context) => {
    const { limit } = parseInput(OverviewQuery, context.req.query(), 'the query');
    return context.json(await readOverview(troupeOf(context), bookOf(context), clock, limit));
  });

  app.get('/api/conversations/:c/snapshot', async (context) => {
    const conversation = context.req.param('c');
    const { at } = parseInput(SnapshotQuery, context.req.query(), 'the query');
    if (at !== undefined) {
      const { projection, head } = await bookOf(context).at(conversation, at);
      return context.json({ seq: projection.seq, head, projection, actors: [] });
    }
    const projection = await bookOf(context).latest(conversation);
    const actors = await troupeOf(context).actors(conversation);
    return context.json({ seq: projection.seq, head: projection.seq, projection, actors });
  });

  app.get('/api/conversations/:c/rows', async (context) => {
    const { agent, kind, q, ...rest } = parseInput(RowsQuery, context.req.query(), 'the query');
    const request = { ...rest, agents: agent, kinds: kind, query: q };
    return context.json(await scanRows(troupeOf(context), context.req.param('c'), request));
  });

  app.get('/api/search', async (context) => {
    const { q, limit } = parseInput(SearchQuery, context.req.query(), 'the query');
    return context.json(await searchConversations(troupeOf(context), clock, { query: q, limit }));
  });
}
