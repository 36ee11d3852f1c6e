import * as z from 'zod';
import { RowsAnswer, SearchAnswer, SnapshotAnswer, TimesAnswer, TreeAnswer } from '../answers.ts';
import { InboxAnswer, StateName } from '../inbox-answer.ts';
import { readInbox } from '../inbox.ts';
import { readTree } from '../read-tree.ts';
import { defineRoute } from '../route.ts';
import { MAX_SCANNED, scanRows } from '../scan-rows.ts';
import { scanTimes } from '../scan-times.ts';
import { searchConversations } from '../search-all.ts';
import { AgentId, ConversationId } from '../../events/index.ts';
import { Flag, limitOf, Names, Seq, Words } from '../schemas.ts';

/** States separated by commas. */
const States = z
  .string()
  .max(100)
  .transform((text) => text.split(','))
  .pipe(z.array(StateName).min(1))
  .meta({ pattern: `^(?:${StateName.options.join('|')})(?:,(?:${StateName.options.join('|')}))*$` });
/** The beginning of an id. */
const Prefix = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._@:-]{0,127}$/);

/** Read-only routes of the inspector page. */
export const inspectorRoutes = [
  defineRoute({
    method: 'GET',
    path: '/api/inbox',
    scopes: ['read'],
    id: 'getInbox',
    summary:
      'Where every conversation stands: the number in each state, and a page of those asked for, the most urgent first. `unread`: conversations with events that are not counted yet',
    query: z.object({
      state: States.optional(),
      agent: AgentId.optional(),
      owner: z.string().min(1).max(256).optional(),
      from: Seq.optional(),
      to: Seq.optional(),
      q: Words.optional(),
      prefix: Prefix.optional(),
      order: z.enum(['urgent', 'newest', 'oldest', 'costliest']).default('urgent'),
      limit: limitOf(100).default(50),
      after: z.string().min(1).max(300).optional(),
    }),
    answer: InboxAnswer,
    handle: ({ context, troupe, query: { state, from, to, ...query } }, { keeperOf, clock }) =>
      readInbox(troupe, keeperOf(context), clock, { ...query, states: state, from, to }),
  }),
  defineRoute({
    method: 'GET',
    path: '/api/search',
    scopes: ['read'],
    id: 'searchConversations',
    summary:
      'Search messages, tool calls, results and errors of all conversations for words and "phrases in quotes", all of which an event must have; a word of three letters or more may go on. `unread`: conversations that are not searched yet. An answer takes about 2 seconds at most; continue at `next`',
    query: z.object({
      q: Words,
      conversation: ConversationId.optional(),
      agent: AgentId.optional(),
      state: States.optional(),
      from: Seq.optional(),
      to: Seq.optional(),
      limit: limitOf(100).default(20),
      after: z.string().min(1).max(600).optional(),
    }),
    answer: SearchAnswer,
    handle: ({ context, troupe, query: { state, ...query } }, { keeperOf, clock }) =>
      searchConversations(troupe, keeperOf(context), clock, { ...query, states: state }),
  }),
  defineRoute({
    method: 'GET',
    path: '/api/conversations/{conversation}/snapshot',
    scopes: ['read'],
    id: 'getSnapshot',
    summary:
      'The projection of the log: agents, turns, tasks, compactions and totals. With `at`, the state after that event, without the current actors. With `events`, also as many of the newest events',
    query: z.object({ at: Seq.optional(), events: limitOf(500).optional() }),
    answer: SnapshotAnswer,
    async handle({ context, troupe, params, query: { at, events: limit } }, { bookOf }) {
      if (at !== undefined) {
        const { projection, head } = await bookOf(context).at(params.conversation, at);
        return { seq: projection.seq, head, projection, actors: [] };
      }
      const projection = await bookOf(context).latest(params.conversation);
      const { seq } = projection;
      const newest = async (most: number) => {
        const after = Math.max(0, seq - most);
        return { events: (await troupe.events(params.conversation, { after, limit: seq - after })).events };
      };
      const [actors, events] = await Promise.all([
        troupe.actors(params.conversation),
        limit === undefined || seq === 0 ? {} : newest(limit),
      ]);
      return { seq, head: seq, projection, actors, ...events };
    },
  }),
  defineRoute({
    method: 'GET',
    path: '/api/conversations/{conversation}/rows',
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
      scanRows(troupe, params.conversation, { ...rest, agents: agent, kinds: kind, query: q }),
  }),
  defineRoute({
    method: 'GET',
    path: '/api/conversations/{conversation}/tree',
    scopes: ['read'],
    id: 'getTree',
    summary:
      'The turns and tasks that the conversation has started, over the threads of all tasks; each names the one it came from. At most 100 threads; `left` counts what is not in the answer',
    answer: TreeAnswer,
    handle: ({ context, troupe, params }, { bookOf }) =>
      readTree({ book: bookOf(context), troupe }, params.conversation),
  }),
  defineRoute({
    method: 'GET',
    path: '/api/conversations/{conversation}/times',
    scopes: ['read'],
    id: 'listTimes',
    summary:
      'Times and kinds of the events after a seq, in columns of numbers; at most 20,000, continue at `next`. With `parts`, also what turns and tools took',
    query: z.object({
      after: Seq.default(0),
      limit: limitOf(MAX_SCANNED).default(MAX_SCANNED),
      parts: Flag.default(false),
    }),
    answer: TimesAnswer,
    handle: ({ troupe, params, query: { after, limit, parts } }) =>
      scanTimes(troupe, params.conversation, { after, limit, parts }),
  }),
] as const;
