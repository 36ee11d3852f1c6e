import * as z from 'zod';
import { isGranted } from '../../library/access/index.ts';
import { Author, Command } from '../../events/index.ts';
import type { ActorStatus, ConversationList, CostReport, NewMessage, Troupe } from '../../library/troupe.ts';
import { admitMessage } from '../access/admit-message.ts';
import { withAuthor } from '../access/author-rule.ts';
import { checkScope } from '../access/check-scope.ts';
import { answerPage } from '../answer-page.ts';
import { EventAnswer, NextPromptAnswer, partOf, TasksAnswer, typed, VerificationAnswer } from '../answers.ts';
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
} from '../schemas.ts';

export const IN_PARTS =
  'A list of more than 4 MiB comes in parts: `next` is the `skip` of the following part, or null at the end';

/** Every command in full, for the document. The handler checks `CommandRequest` first, for better messages. */
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
  // The command decides which of the two scopes it needs.
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
      'Conversations, the most recently active first. A page may be short; pass its `next` as `before` to continue until it is null',
    query: z.object({
      limit: limitOf(5_000).optional(),
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
    summary: 'Agents of a conversation with their state',
    answer: z.object({ actors: z.array(typed<ActorStatus>()) }),
    gives: { agents: '/actors/0/agent', turns: '/actors/0/lastTurn', diff: '/actors/0/lastTurn' },
    handle: async ({ troupe, params }) => ({ actors: await troupe.actors(params.conversation) }),
  }),
  defineRoute({
    method: 'GET',
    path: '/api/conversations/{conversation}/tasks',
    scopes: ['read'],
    id: 'listTasks',
    summary: `What agents wait for: delegated tasks, questions and approvals, and their outcomes. ${IN_PARTS}`,
    query: PageQuery.extend({ open: Flag.optional() }),
    answer: TasksAnswer,
    async handle({ context, troupe, params, query: { open, skip } }) {
      const list = await troupe.tasks(params.conversation, { open });
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
    path: '/api/conversations/{conversation}/agents/{agent}/cost',
    scopes: ['read'],
    id: 'getCost',
    summary: `What the agent's prompts cost with a vendor's cache, call by call; renders each of them again. ${IN_PARTS}`,
    query: PageQuery.extend({ vendor: z.enum(['anthropic', 'openai', 'gemini', 'deepseek']).optional() }),
    answer: partOf<CostReport>('rows', { type: 'object' }, { total: { type: 'object' } }),
    async handle({ context, troupe, params, query: { vendor, skip } }) {
      const report = await troupe.cost(params.conversation, params.agent, { vendor });
      return answerPage(context, { ...report }, 'rows', skip);
    },
  }),
  sendCommand,
] as const;
