import * as z from 'zod';
import { OverviewAnswer, RowsAnswer, SearchAnswer, SnapshotAnswer } from '../answers.ts';
import { readOverview } from '../overview.ts';
import { defineRoute } from '../route.ts';
import { scanRows, searchConversations } from '../search-conversations.ts';
import { limitOf, Names, Seq, Words } from '../schemas.ts';

/** Routes of the inspector's page. They only read the log. */
export const inspectorRoutes = [
  defineRoute({
    method: 'GET',
    path: '/api/overview',
    scopes: ['read'],
    id: 'getOverview',
    summary: 'Conversations, the last active first, with how many of their agents fail, run or wait',
    query: z.object({ limit: limitOf(64).default(50) }),
    answer: OverviewAnswer,
    handle: ({ context, troupe, query }, { bookOf, clock }) =>
      readOverview(troupe, bookOf(context), clock, query.limit),
  }),
  defineRoute({
    method: 'GET',
    path: '/api/search',
    scopes: ['read'],
    id: 'searchConversations',
    summary:
      'Words in messages, arguments and results of calls, and errors; of the 50 conversations that were active last, 100,000 events and 2 seconds at most',
    query: z.object({ q: Words, limit: limitOf(100).default(20) }),
    answer: SearchAnswer,
    handle: ({ troupe, query: { q, limit } }, { clock }) =>
      searchConversations(troupe, clock, { query: q, limit }),
  }),
  defineRoute({
    method: 'GET',
    path: '/api/conversations/{c}/snapshot',
    scopes: ['read'],
    id: 'getSnapshot',
    summary:
      'What the log comes to, folded: agents, turns, tasks, compactions and totals; with `at`, as it was after that event, and without the actors of now',
    query: z.object({ at: Seq.optional() }),
    answer: SnapshotAnswer,
    async handle({ context, troupe, params, query: { at } }, { bookOf }) {
      if (at !== undefined) {
        const { projection, head } = await bookOf(context).at(params.c, at);
        return { seq: projection.seq, head, projection, actors: [] };
      }
      const projection = await bookOf(context).latest(params.c);
      const actors = await troupe.actors(params.c);
      return { seq: projection.seq, head: projection.seq, projection, actors };
    },
  }),
  defineRoute({
    method: 'GET',
    path: '/api/conversations/{c}/rows',
    scopes: ['read'],
    id: 'listRows',
    summary:
      'Events as lines of text, filtered; the newest before a seq, or the oldest after one. Looks at 20,000 events at most: `next` is where to go on',
    query: z.object({
      before: Seq.optional(),
      after: Seq.optional(),
      limit: limitOf(500).default(200),
      agent: Names,
      kind: Names,
      not: Names,
      level: z.enum(['talk', 'work', 'noise', 'problem']).optional(),
      turn: z.string().min(1).max(220).optional(),
      q: Words.optional(),
    }),
    answer: RowsAnswer,
    handle: ({ troupe, params, query: { agent, kind, q, ...rest } }) =>
      scanRows(troupe, params.c, { ...rest, agents: agent, kinds: kind, query: q }),
  }),
] as const;
