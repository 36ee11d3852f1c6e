import * as z from 'zod';
import { KindName } from '../inbox.ts';
import { isGranted } from '../../library/access/index.ts';
import { AgentId, Author, Command } from '../../events/index.ts';
import type {
  ActorStatus,
  ConversationList,
  ConversationCost,
  CostReport,
  NewMessage,
  Troupe,
  PromptDiff,
  TurnComparison,
  TurnTrace,
  Answer,
} from '../../library/troupe.ts';
import { admitMessage, withAuthor, checkScope, deciderFor } from '../permissions.ts';
import {
  EventAnswer,
  NextPromptAnswer,
  partOf,
  TasksAnswer,
  typed,
  VerificationAnswer,
  type Part,
  SentPromptAnswer,
} from '../answers.ts';
import { readJson, readMessage } from '../read-json.ts';
import { defineRoute } from '../route.ts';
import {
  CommandRequest,
  ConversationPath,
  Flag,
  limitOf,
  NewEventBody,
  PageQuery,
  parseInput,
  Seq,
  Step,
  StoredSeq,
} from '../schemas.ts';
import type { Context } from 'hono';
import { callerOf } from '../caller.ts';
import { TroupeError } from '../../base/errors.ts';
import { holdPlace } from '../open-stream.ts';

const IN_PARTS =
  'A list of more than 4 MiB comes in parts: `next` is the `skip` of the following part, or null at the end';

/** Every command with all its fields, for the document. The handler first checks `CommandRequest`, which gives better messages. */
const AnyCommand = z.union(
  Command.options.map((option: z.ZodObject) => option.extend({ author: Author.optional() })),
) as unknown as z.ZodType<Command & { author?: Author }>;

/** Commands that answer a waiting agent. */
const ANSWERS: ReadonlySet<Command['command']> = new Set(['answer', 'decide', 'cancelTask']);

/** The type that clients send. The author defaults to that of the caller's key. */
const MessageBody = NewEventBody as unknown as z.ZodType<
  z.output<typeof NewEventBody>,
  Omit<NewMessage, 'author' | 'forTools' | 'storeForTools' | 'reply'> & { author?: Author }
>;

const sendMessage = defineRoute({
  method: 'POST',
  path: '/api/conversations/{conversation}/events',
  scopes: ['write'],
  id: 'sendMessage',
  summary:
    'Append a message, with attachments as base64. A repeated id with the same payload answers 200, with another payload 409. A busy agent that rejects messages answers 409, too',
  body: MessageBody,
  example: { author: { kind: 'user', id: 'ana', name: 'Ana' }, to: ['writer'], content: 'Hello' },
  status: 201,
  answer: z.object({ event: EventAnswer }),
  also: { 200: { schema: z.object({ event: EventAnswer }) } },
  errors: [502],
  gives: { conversations: '/event/conversation' },
  allowsEmptyParams: true,
  async handle({ context, params, caller }) {
    const { principal, troupe } = caller;
    const { conversation } = parseInput(ConversationPath, params, 'the path');
    const body = withAuthor(principal, await readMessage(context));
    const message = parseInput(NewEventBody, body, 'the body');
    const { channel = 'http' } = message;
    if (isGranted(principal, conversation) && (channel !== 'http' || message.session))
      checkScope(principal, 'operate');
    admitMessage(caller, conversation, message);
    const { kind, event } = await troupe.send(conversation, { ...message, channel });
    return context.json({ event }, kind === 'appended' ? 201 : 200);
  },
});

const sendCommand = defineRoute({
  method: 'POST',
  path: '/api/commands',
  // Which of the two scopes is needed depends on the command.
  scopes: ['write', 'operate'],
  id: 'sendCommand',
  summary:
    'Pause or resume an agent, abort a turn, change the mode or the phase, direct a run, run a workflow, answer a question, decide an approval, cancel a task, change participants, spawn agents, release a held message, fork a conversation, run a turn again in a fork, archive or reopen a conversation',
  body: AnyCommand,
  example: { command: 'compact', conversation: 'main', agent: 'writer' },
  status: 202,
  answer: z.object({ event: EventAnswer, seq: z.int().nonnegative() }),
  async handle({ context, caller: { principal, troupe } }) {
    const body = withAuthor(principal, await readJson(context));
    const { author, ...given } = parseInput(CommandRequest, body, 'the body');
    const command = parseInput(Command, given, 'the body');
    checkScope(principal, ANSWERS.has(command.command) ? 'write' : 'operate');
    const event = await troupe.command(command, author);
    return { event, seq: event.seq };
  },
});

export const conversationRoutes = [
  defineRoute({
    method: 'GET',
    path: '/api/conversations',
    scopes: ['read'],
    id: 'listConversations',
    summary:
      'Conversations, the most recently active first, threads of tasks among them unless `kind` says otherwise. A page may be short; pass its `next` as `before` to continue until it is null',
    query: z.object({
      limit: limitOf(5_000).optional(),
      /** Kind of conversation. Default: both. */
      kind: KindName.optional(),
      /** `next` of the previous page. */
      before: z
        .string()
        .max(200)
        .regex(/^\d{1,15}:./, 'is not a list position: use the "next" of a page')
        .optional(),
    }),
    answer: typed<ConversationList>({
      type: 'object',
      properties: {
        conversations: { type: 'array', items: { type: 'object' } },
        next: { type: ['string', 'null'] },
      },
    }),
    gives: { conversations: '/conversations/0/id' },
    handle: ({ troupe, query }) => troupe.listConversations(query),
  }),
  defineRoute({
    method: 'GET',
    path: '/api/conversations/{conversation}',
    scopes: ['read'],
    id: 'getConversation',
    summary:
      'State, mode, phase, run with its step, open delegations, and compactions under way of a conversation',
    answer: typed<Awaited<ReturnType<Troupe['state']>>>(),
    handle: ({ troupe, params }) => troupe.state(params.conversation),
  }),
  sendMessage,
  defineRoute({
    method: 'GET',
    path: '/api/conversations/{conversation}/events',
    scopes: ['read'],
    id: 'listEvents',
    summary:
      'Events after a seq: at most `limit`, and at most about 4 MiB. A short page is not the end: ask again after the last event until it is at `head`, or none is left',
    query: z.object({ after: Seq.default(0), limit: limitOf(5_000).default(500) }),
    answer: z.object({ events: z.array(EventAnswer), head: z.int().nonnegative() }),
    handle: ({ troupe, params, query }) => troupe.events(params.conversation, query),
  }),
  defineRoute({
    method: 'GET',
    path: '/api/conversations/{conversation}/integrity',
    scopes: ['read'],
    id: 'verifyConversation',
    summary:
      'Verifies up to 10,000 stored events after a seq: gaps, hashes of contents, the chain. Pass `next` as `after` to continue until it is null',
    query: z.object({ after: Seq.default(0) }),
    answer: VerificationAnswer,
    handle: ({ troupe, params, query }) => troupe.verify(params.conversation, query),
  }),
  defineRoute({
    method: 'GET',
    path: '/api/conversations/{conversation}/actors',
    scopes: ['read'],
    id: 'listActors',
    summary:
      'Agents of a conversation with their state. `unaddressed`: the one that a message to nobody goes to where no route matches',
    answer: z.object({ actors: z.array(typed<ActorStatus>()), unaddressed: AgentId.nullable() }),
    gives: { agents: '/actors/0/agent', turns: '/actors/0/lastTurn', diff: '/actors/0/lastTurn' },
    async handle({ troupe, params: { conversation } }) {
      const actors = await troupe.actors(conversation);
      return { actors, unaddressed: await troupe.unaddressed(conversation) };
    },
  }),
  defineRoute({
    method: 'GET',
    path: '/api/conversations/{conversation}/tasks',
    scopes: ['read'],
    id: 'listTasks',
    summary: `What agents wait for: delegated tasks, questions and approvals, and their outcomes. \`decidable\`: this key and the person \`as\` may answer or decide it now; default: the author of the key, else the operator. ${IN_PARTS}`,
    query: PageQuery.extend({ open: Flag.optional(), as: Author.shape.id.optional() }),
    answer: TasksAnswer,
    async handle({ context, caller: { principal }, troupe, params, query: { open, skip, as } }) {
      const list = await troupe.tasks(params.conversation, { open, as: deciderFor(principal, as) });
      return answerPage(context, { ...list }, 'tasks', skip);
    },
  }),
  defineRoute({
    method: 'GET',
    path: '/api/conversations/{conversation}/agents/{agent}/prompt',
    scopes: ['read'],
    id: 'getNextPrompt',
    summary: `The prompt that the agent would get now; nothing is sent. ${IN_PARTS}`,
    query: PageQuery,
    answer: NextPromptAnswer,
    handle: async ({ context, troupe, params, query: { skip } }) =>
      answerPage(context, await troupe.prompt(params.conversation, params.agent), 'messages', skip),
  }),
  defineRoute({
    method: 'GET',
    path: '/api/conversations/{conversation}/agents/{agent}/cache-cost',
    scopes: ['read'],
    id: 'getCacheCost',
    summary: `What the agent's prompts cost with a vendor's cache, call by call; renders each of them again. ${IN_PARTS}`,
    query: PageQuery.extend({ vendor: z.enum(['anthropic', 'openai', 'gemini', 'deepseek']).optional() }),
    answer: partOf<CostReport>('rows', { type: 'object' }, { total: { type: 'object' } }),
    async handle({ context, troupe, params, query: { vendor, skip } }) {
      const report = await troupe.cacheCost(params.conversation, params.agent, { vendor });
      return answerPage(context, { ...report }, 'rows', skip);
    },
  }),
  defineRoute({
    method: 'GET',
    path: '/api/conversations/{conversation}/cost',
    scopes: ['read'],
    id: 'getCost',
    summary:
      'What the conversation and the threads of its tasks cost, US dollars: answers, summaries and failed calls, by agent, tool, model and day, what the cache saved, and what is not known',
    answer: typed<ConversationCost>({ type: 'object' }),
    handle: ({ troupe, params }) => troupe.cost(params.conversation),
  }),
  sendCommand,
] as const;

/** Most bytes of one answer; a longer list continues in the next one. */
export const ANSWER_BYTES = 4 * 1024 * 1024;

/** Characters that are serialized without a pause, which takes some milliseconds. */
const SLICE_BYTES = 256 * 1024;
/** Longest text of an item in code units, and most source events of an item. */
const TEXT_LENGTH = 1024 * 1024;
const MOST_SEQS = 10_000;

/**
 * An answer with part of a long list: the items after `skip`, up to `ANSWER_BYTES`, and `next` for the following part, null at
 * the end. Of an item with a very long text the answer has the beginning, and `truncated` is its full length. The written
 * bytes are charged to the caller, like reads.
 */
async function answerPage<K extends string, T extends Record<K, readonly unknown[]>>(
  context: Context,
  answer: T,
  name: K,
  skip: number,
): Promise<Response> {
  const { reading, traffic } = callerOf(context);
  const { [name]: list, ...rest } = answer;
  const items: string[] = [];
  let bytes = 0;
  let slice = 0;
  for (let index = skip; index < list.length && bytes < ANSWER_BYTES; index += 1) {
    const item = JSON.stringify(shortened(list[index]));
    items.push(item);
    const size = Buffer.byteLength(item);
    bytes += size;
    slice += size;
    if (slice < SLICE_BYTES) continue;
    slice = 0;
    await traffic.slices.next();
  }
  const end = skip + items.length;
  const next = end < list.length ? end : null;
  // The head has at least `next`, so the list can follow after a comma.
  const head = JSON.stringify({ ...rest, next }).slice(0, -1);
  await reading?.charge(bytes / 1_024);
  const text = `${head},${JSON.stringify(name)}:[${items.join(',')}]}`;
  return context.body(text, 200, { 'content-type': 'application/json' });
}

/** Shortens an item: consecutive messages of many people form one prompt message of any length. */
function shortened(item: unknown): unknown {
  if (typeof item !== 'object' || item === null || !('content' in item)) return item;
  const { content } = item;
  if (typeof content !== 'string' || content.length <= TEXT_LENGTH) return item;
  const seqs = 'seqs' in item && Array.isArray(item.seqs) ? { seqs: item.seqs.slice(0, MOST_SEQS) } : {};
  return { ...item, ...seqs, content: content.slice(0, TEXT_LENGTH), truncated: content.length };
}

export const turnRoutes = [
  defineRoute({
    method: 'GET',
    path: '/api/turns/{turn}',
    scopes: ['read'],
    id: 'getTurn',
    summary: `Events and model calls of a turn. ${IN_PARTS}`,
    query: PageQuery,
    answer: typed<Part<TurnTrace>>(),
    handle: async ({ context, troupe, params, query: { skip } }) =>
      answerPage(context, { ...(await troupe.trace(params.turn)) }, 'events', skip),
  }),
  defineRoute({
    method: 'GET',
    path: '/api/turns/{turn}/prompt',
    scopes: ['read'],
    id: 'getSentPrompt',
    summary: `A prompt as it was sent; by default of the last step. ${IN_PARTS}`,
    query: PageQuery.extend({ step: Step }),
    answer: SentPromptAnswer,
    handle: async ({ context, troupe, params, query: { step, skip } }) =>
      answerPage(context, await troupe.promptOf(params.turn, step), 'messages', skip),
  }),
  defineRoute({
    method: 'GET',
    path: '/api/turns/{turn}/diff/{other}',
    scopes: ['read'],
    id: 'comparePrompts',
    summary:
      "Changes between two prompts of an agent: layers, message lines, and why the cache broke. The other may be 'next'. Beyond 1,000 messages or a million characters, `omitted` counts the rest",
    query: z.object({ stepA: Step, stepB: Step }),
    answer: typed<PromptDiff>(),
    handle: ({ troupe, params, query }) => troupe.diff(params.turn, params.other, query),
  }),
  defineRoute({
    method: 'GET',
    path: '/api/turns/{turn}/compare/{other}',
    scopes: ['read'],
    id: 'compareTurns',
    summary:
      'Two turns side by side, for a turn that was run again: words, calls with their results, tokens, cost, time. Beyond 200 calls, `omitted` counts the rest',
    answer: typed<TurnComparison>(),
    handle: ({ troupe, params }) => troupe.compare(params.turn, params.other),
  }),
] as const;

/** Longest wait of a request, ms, so that proxies do not end it. The client then asks again. */
const WAIT_MS = 20_000;

/** What followed from a message. Its events are in the log. */
type ToldAnswer = Omit<Answer, 'events'>;

export const answerRoute = defineRoute({
  method: 'GET',
  path: '/api/conversations/{conversation}/answer',
  scopes: ['read'],
  id: 'getAnswer',
  summary:
    'What came of a stored message, by its `seq`: words, replies, waits and failures. Waits up to 20 s for it; `answer` is null if agents are still at work: ask again',
  query: z.object({ seq: StoredSeq }),
  answer: z.object({ answer: typed<ToldAnswer | null>({ type: ['object', 'null'] }) }),
  async handle({ context, params, query, caller }, { clock, signal }) {
    const place = holdPlace({ caller, clock, signal });
    try {
      const ends = AbortSignal.any([place.ends, context.req.raw.signal]);
      const parts = caller.troupe.rejoin(params.conversation, query.seq, {
        signal: ends,
        timeoutMs: WAIT_MS,
      });
      let next = await parts.next();
      while (!next.done) next = await parts.next();
      const { events: _, ...answer } = next.value;
      return { answer };
    } catch (error) {
      if (error instanceof TroupeError && error.code === 'aborted') return { answer: null };
      throw error;
    } finally {
      place.end();
    }
  },
});
