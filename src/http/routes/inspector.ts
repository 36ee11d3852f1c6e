import * as z from 'zod';
import { OverviewAnswer, RowsAnswer, SearchAnswer, SnapshotAnswer } from '../answers.ts';
import { readOverview } from '../overview.ts';
import { defineRoute } from '../route.ts';
import { scanRows, searchConversations } from '../search-conversations.ts';
import { limitOf, Names, Seq, Words } from '../schemas.ts';

/** Read-only routes of the inspector page. */
export const inspectorRoutes = [
  defineRoute({
    method: 'GET',
    path: '/api/overview',
    scopes: ['read'],
    id: 'getOverview',
    summary:
      'Conversations, the most recently active first, with the number of their failed, running and waiting agents',
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
      'Search messages, tool calls, results and errors in the 50 most recently active conversations; at most 100,000 events and 2 seconds',
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
      'The projection of the log: agents, turns, tasks, compactions and totals. With `at`, the state after that event, without the current actors',
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
      'Events as lines of text, filtered: the newest before a seq, or the oldest after one. Reads at most 20,000 events; continue at `next`',
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
