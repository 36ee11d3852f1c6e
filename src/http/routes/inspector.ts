import * as z from 'zod';
import { RowsAnswer, SearchAnswer, SnapshotAnswer, TimesAnswer, TreeAnswer } from '../answers.ts';
import { CostsAnswer, readCosts } from '../costs.ts';
import { InboxAnswer, KindName, StateName, readInbox, waitAWhile } from '../inbox.ts';
import { deciderFor } from '../permissions.ts';
import { defineRoute, type RouteServer } from '../route.ts';
import { MAX_SCANNED, scanRows, scanTimes, searchConversations } from '../scan.ts';
import { AgentId, ConversationId } from '../../events/index.ts';
import { Flag, limitOf, Names, Seq, Words } from '../schemas.ts';
import { MAX_TASKS, type Projection, type TaskView } from '../../library/projection/model.ts';
import { type Tree, type TreeNode, treeOf } from '../../library/projection/tree.ts';
import { oneLine } from '../../library/projection/words.ts';
import type { Troupe } from '../../library/troupe.ts';
import type { ProjectionCache } from '../projection-caches.ts';

/** Names of states, separated by commas. */
const States = z
  .string()
  .max(100)
  .transform((text) => text.split(','))
  .pipe(z.array(StateName).min(1))
  .meta({ pattern: `^(?:${StateName.options.join('|')})(?:,(?:${StateName.options.join('|')}))*$` });
/** The beginning of an id. */
const Prefix = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._@:-]{0,127}$/);

export const inspectorRoutes = [
  defineRoute({
    method: 'GET',
    path: '/api/inbox',
    scopes: ['read'],
    id: 'getInbox',
    summary:
      'Where every conversation stands: the number in each state, and a page of those asked for, the most urgent first; with `urgent`, the first page has all in which somebody has to act, at most so many. `unread`: conversations with events that are not counted yet',
    query: z.object({
      state: States.optional(),
      agent: AgentId.optional(),
      owner: z.string().min(1).max(256).optional(),
      from: Seq.optional(),
      to: Seq.optional(),
      q: Words.optional(),
      prefix: Prefix.optional(),
      kind: KindName.optional(),
      order: z.enum(['urgent', 'newest', 'oldest', 'costliest']).default('urgent'),
      limit: limitOf(100).default(50),
      urgent: limitOf(500).optional(),
      after: z.string().min(1).max(300).optional(),
    }),
    answer: InboxAnswer,
    handle: (
      { context, caller: { principal }, troupe, query: { state, from, to, ...query } },
      { keeperOf, clock }: RouteServer,
    ) =>
      readInbox(troupe, keeperOf(context), clock, {
        ...query,
        states: state,
        from,
        to,
        as: deciderFor(principal, undefined),
      }),
  }),
  defineRoute({
    method: 'GET',
    path: '/api/costs',
    scopes: ['read'],
    id: 'listCosts',
    summary:
      'What all conversations cost since the beginning of a day, by agent, model, person and day, with what summaries and failed calls cost. `unread`: conversations that are not read yet; ask again',
    query: z.object({ from: Seq.default(0) }),
    answer: CostsAnswer,
    async handle({ context, troupe, query: { from } }, { keeperOf, clock }: RouteServer) {
      const keeper = keeperOf(context);
      await waitAWhile(keeper, clock);
      return readCosts(troupe, keeper, clock, from);
    },
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
      author: Words.optional(),
      kind: Names,
      state: States.optional(),
      from: Seq.optional(),
      to: Seq.optional(),
      limit: limitOf(100).default(20),
      after: z.string().min(1).max(600).optional(),
    }),
    answer: SearchAnswer,
    handle: ({ context, troupe, query: { state, kind, ...query } }, { keeperOf, clock }: RouteServer) =>
      searchConversations(troupe, keeperOf(context), clock, { ...query, kinds: kind, states: state }),
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
    async handle({ context, troupe, params, query: { at, events: limit } }, { cacheOf }: RouteServer) {
      if (at !== undefined) {
        const { projection, head } = await cacheOf(context).at(params.conversation, at);
        return { seq: projection.seq, head, projection, actors: [] };
      }
      const projection = await cacheOf(context).latest(params.conversation);
      const { seq } = projection;
      const newest = async (most: number) => {
        const after = Math.max(0, seq - most);
        return { events: (await troupe.events(params.conversation, { after, limit: seq - after })).events };
      };
      const [actors, unaddressed, events] = await Promise.all([
        troupe.actors(params.conversation),
        troupe.unaddressed(params.conversation),
        limit === undefined || seq === 0 ? {} : newest(limit),
      ]);
      return { seq, head: seq, projection, actors, unaddressed, ...events };
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
    handle: ({ context, troupe, params }, { cacheOf }: RouteServer) =>
      readTree({ cache: cacheOf(context), troupe }, params.conversation),
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

/** Most threads of an answer, and most turns and tasks after which no further thread is read. */
const MAX_THREADS = 100;
const MAX_NODES = 2_000;
const AT_ONCE = 8;

/** The turns and tasks that a conversation has started, over all threads: outer threads first, and within a thread the newest. */
async function readTree(sources: TreeSources, conversation: string): Promise<Tree> {
  const root = await withTasks(sources, await sources.cache.latest(conversation));
  const { seq } = root.projection;
  const tree: Tree = {
    conversation: root.projection.conversation,
    seq,
    nodes: [],
    left: { threads: 0, turns: 0, tasks: 0 },
  };
  add(tree, root, null);
  const seen = new Set<string>([conversation]);
  // Threads found meanwhile go to the end of the list.
  const waiting = threadsIn(tree.nodes, seen);
  for (let read = 0; waiting.length > 0 && read < MAX_THREADS && tree.nodes.length < MAX_NODES;) {
    const batch = waiting.splice(0, Math.min(AT_ONCE, MAX_THREADS - read));
    read += batch.length;
    const found = await Promise.all(batch.map((thread) => readThread(sources, thread)));
    for (const { read, home } of found) {
      if (read) waiting.push(...threadsIn(add(tree, read, home), seen));
      else tree.left.threads += 1;
    }
  }
  tree.left.threads += waiting.length;
  return tree;
}

interface TreeSources {
  cache: ProjectionCache;
  troupe: Pick<Troupe, 'tasks'>;
}

/** A conversation with all of its tasks, or the newest of them. */
interface TreePart {
  projection: Projection;
  /** Number of delegations that are left out. */
  left: number;
}

/** A projection keeps `MAX_TASKS` ended tasks. The others are read from the log, without the time at which they ended. */
async function withTasks({ troupe }: TreeSources, projection: Projection): Promise<TreePart> {
  const { tasks, conversation } = projection;
  if (tasks.filter(({ endedAt }) => endedAt !== null).length < MAX_TASKS) return { projection, left: 0 };
  const known = new Set(tasks.map(({ id }) => id));
  const others = (await troupe.tasks(conversation)).tasks.flatMap((task): TaskView[] => {
    const { id, kind, owner, assignee = null, thread = null, text = '', deadline, openedAt, end } = task;
    if (kind !== 'delegation' || known.has(id)) return [];
    const { seq, at } = openedAt;
    const outcome = end?.outcome ?? null;
    const given = { id, kind, owner, assignee, thread, seq, at, text: oneLine(text), outcome };
    return [{ ...given, deadline, choices: [], argsHash: null, endedAt: null }];
  });
  const more = others.slice(-MAX_NODES);
  return { projection: { ...projection, tasks: [...more, ...tasks] }, left: others.length - more.length };
}

function add(tree: Tree, { projection, left }: TreePart, home: string | null): TreeNode[] {
  const nodes = treeOf(projection, home);
  tree.nodes.push(...nodes);
  tree.left.turns += droppedOf(projection);
  tree.left.tasks += left;
  return nodes;
}

interface Thread {
  thread: string;
  home: string;
}

/** The threads of these tasks that were not seen yet, newest first. */
function threadsIn(nodes: readonly TreeNode[], seen: Set<string>): Thread[] {
  const found: Thread[] = [];
  // A follow-up continues in the thread of the first task.
  for (const { id, thread } of nodes.toSorted((a, b) => a.at - b.at)) {
    if (thread === null || seen.has(thread)) continue;
    seen.add(thread);
    found.push({ thread, home: id });
  }
  return found.toReversed();
}

/** Null for a thread that is deleted, has no events yet, or is not granted to the caller. */
async function readThread(sources: TreeSources, { thread, home }: Thread) {
  const projection = await sources.cache.latest(thread).catch(() => null);
  return { read: projection && (await withTasks(sources, projection)), home };
}

function droppedOf({ totals, turns }: Projection): number {
  return totals.turns - turns.length;
}
