import * as z from 'zod';
import { AgentId, Cut, Event, PromptRecord } from '../events/index.ts';
import { ACCESS_OPERATIONS } from './openapi-access.ts';
import { ERROR, ERROR_RESPONSES } from './openapi-errors.ts';
import {
  describeOperation,
  JSON_TYPE,
  listOf,
  type Operation,
  schemaOf,
  WHOLE,
} from './openapi-operation.ts';
import * as inspector from './inspector-schemas.ts';
import * as schemas from './schemas.ts';

const EVENT = { $ref: '#/components/schemas/Event' };
const PROMPT = { $ref: '#/components/schemas/Prompt' };

const NEXT = { type: ['integer', 'null'] };
const IN_PARTS =
  'A list of more than 4 MiB comes in parts: `next` is the `skip` of the one behind, null at the end';

/** A prompt with what is told of it beside. */
const Inspected = PromptRecord.extend({
  cached: z.object({ messages: z.int(), tokens: z.int() }),
  relief: z.object({ at: z.int(), left: z.int() }),
  cuts: z.array(
    Cut.extend({
      by: AgentId.optional(),
      strategy: z.enum(['summary', 'extraction']).optional(),
      trimmed: z.int().optional(),
      steps: z.int().optional(),
    }),
  ),
});

const TASK = {
  type: 'object',
  properties: {
    id: { type: 'string' },
    kind: { enum: ['delegation', 'question', 'approval'] },
    owner: { type: 'string' },
    assignee: { type: 'string' },
    thread: { type: 'string' },
    text: { type: 'string' },
    tool: { type: 'string' },
    args: { type: 'string' },
    argsHash: { type: 'string' },
    by: { type: 'array', items: { type: 'string' } },
    choices: { type: 'array', items: { type: 'string' } },
    deadline: { type: ['integer', 'null'] },
    openedAt: { type: 'object' },
    end: { type: ['object', 'null'] },
    group: { type: 'string' },
    join: { enum: ['all', 'first', 'any'] },
  },
  required: ['id', 'kind', 'owner', 'deadline', 'openedAt', 'end', 'group', 'join'],
};

const QUEUES = {
  type: 'object',
  properties: {
    waiting: WHOLE,
    active: WHOLE,
    delayed: WHOLE,
    failed: WHOLE,
    wait: {
      type: ['object', 'null'],
      properties: { p50Ms: { type: 'number' }, p95Ms: { type: 'number' }, count: WHOLE },
      required: ['p50Ms', 'p95Ms', 'count'],
    },
  },
  required: ['waiting', 'active', 'delayed', 'failed', 'wait'],
};

const READINESS = {
  type: 'object',
  properties: {
    status: { enum: ['ok', 'unavailable', 'stopping'] },
    store: { type: 'string' },
    queue: { type: 'string' },
  },
  required: ['status'],
};

const OPERATIONS: Record<string, Operation> = {
  'GET /api/conversations': {
    id: 'listConversations',
    summary:
      'Conversations, the last active first; a page may be short, and goes on with its `next` as `before`, until that is null',
    query: schemas.ConversationsQuery,
    answer: {
      status: 200,
      schema: listOf('conversations', { type: 'object' }, { next: { type: ['string', 'null'] } }),
    },
    gives: { conversations: '/conversations/0/id' },
  },
  'GET /api/overview': {
    id: 'getOverview',
    summary: 'Conversations, the last active first, with how many of their agents fail, run or wait',
    query: schemas.OverviewQuery,
    answer: { status: 200, of: inspector.OverviewAnswer },
  },
  'GET /api/search': {
    id: 'searchConversations',
    summary:
      'Words in messages, arguments and results of calls, and errors; of the 50 conversations that were active last, 100,000 events and 2 seconds at most',
    query: schemas.SearchQuery,
    answer: { status: 200, of: inspector.SearchAnswer },
  },
  'GET /api/conversations/{c}': {
    id: 'getConversation',
    summary: 'State, mode, phase, run with its step, and open delegations of a conversation',
    answer: { status: 200, schema: { type: 'object' } },
  },
  'POST /api/conversations/{c}/events': {
    id: 'sendMessage',
    summary:
      'Append a message, with what comes with it as base64; the same id and payload again answers 200, another payload 409, as does an agent at work that takes nothing meanwhile',
    body: schemas.NewEventBody,
    answer: { status: 201, schema: { type: 'object', properties: { event: EVENT } } },
    also: { 200: { schema: { type: 'object', properties: { event: EVENT } } } },
    gives: { conversations: '/event/conversation' },
  },
  'GET /api/conversations/{c}/events': {
    id: 'listEvents',
    summary:
      'Events after a seq: at most `limit`, and no more once they are 4 MiB. Fewer than `limit` are no end: ask again after the last one until it is at `head`, or none comes',
    query: schemas.EventsQuery,
    answer: { status: 200, schema: listOf('events', EVENT, { head: { type: 'integer' } }) },
  },
  'GET /api/conversations/{c}/actors': {
    id: 'listActors',
    summary: 'The agents of a conversation with their state',
    answer: { status: 200, schema: listOf('actors', { type: 'object' }) },
    gives: { agents: '/actors/0/agent', turns: '/actors/0/lastTurn', diff: '/actors/0/lastTurn' },
  },
  'GET /api/conversations/{c}/snapshot': {
    id: 'getSnapshot',
    summary:
      'What the log comes to, folded: agents, turns, tasks, compactions and totals; with `at`, as it was after that event, and without the actors of now',
    query: schemas.SnapshotQuery,
    answer: { status: 200, of: inspector.SnapshotAnswer },
  },
  'GET /api/conversations/{c}/rows': {
    id: 'listRows',
    summary:
      'Events as lines of text, filtered; the newest before a seq, or the oldest after one. Looks at 20,000 events at most: `next` is where to go on',
    query: schemas.RowsQuery,
    answer: { status: 200, of: inspector.RowsAnswer },
  },
  'GET /api/conversations/{c}/tasks': {
    id: 'listTasks',
    summary: `What agents wait for: tasks of other agents, questions and approvals, and how they ended. ${IN_PARTS}`,
    query: schemas.TasksQuery,
    answer: {
      status: 200,
      schema: listOf('tasks', TASK, { thread: { type: ['object', 'null'] }, next: NEXT }),
    },
  },
  'GET /api/conversations/{c}/agents/{a}/prompt': {
    id: 'getNextPrompt',
    summary: `The prompt the agent would be sent now; nothing is sent. ${IN_PARTS}`,
    query: schemas.PageQuery,
    answer: { status: 200, schema: PROMPT },
  },
  'GET /api/conversations/{c}/agents/{a}/cost': {
    id: 'getCost',
    summary: `What the agent's prompts cost with a vendor's cache, call by call; renders each of them again. ${IN_PARTS}`,
    query: schemas.CostQuery,
    answer: {
      status: 200,
      schema: listOf('rows', { type: 'object' }, { total: { type: 'object' }, next: NEXT }),
    },
  },
  'DELETE /api/conversations/{c}': {
    id: 'deleteConversation',
    summary:
      "Delete a conversation with its threads; `exported` is how many of their events were kept, or 'none': 409 where there are others by now, or an agent is at work",
    query: schemas.DeleteQuery,
    answer: { status: 200, schema: { type: 'object' } },
  },
  'GET /api/conversations/{c}/export': {
    id: 'exportConversation',
    summary:
      'The conversation as JSON lines, with `threads` those of what was delegated in it behind it; as `html`, a page to read',
    query: schemas.ExportQuery,
    answer: { status: 200, type: 'application/x-ndjson' },
    also: { 200: { type: 'text/html' } },
  },
  'GET /api/turns/{t}': {
    id: 'getTurn',
    summary: `Events and model calls of a turn. ${IN_PARTS}`,
    query: schemas.PageQuery,
    answer: { status: 200 },
  },
  'GET /api/turns/{t}/prompt': {
    id: 'getSentPrompt',
    summary: `A prompt as it was sent; the last step by default. ${IN_PARTS}`,
    query: schemas.StepQuery,
    answer: { status: 200, schema: PROMPT },
  },
  'GET /api/turns/{a}/diff/{b}': {
    id: 'comparePrompts',
    summary:
      "What changed between two prompts of an agent: layers, messages line by line, why the cache broke; b may be 'next'. Of more than 1,000 messages, or a million characters, `omitted` has the number of the rest",
    query: schemas.DiffQuery,
    answer: { status: 200 },
  },
  'POST /api/commands': {
    id: 'sendCommand',
    summary:
      'Pause or resume an agent, abort a turn, change the mode or the phase, direct a run, run a workflow, answer a question, decide an approval, call off a task, say who takes part, spawn agents, pass on what was held back, archive or reopen a conversation',
    body: schemas.AnyCommand,
    answer: {
      status: 202,
      schema: { type: 'object', properties: { event: EVENT, seq: { type: 'integer' } } },
    },
  },
  'GET /api/events': {
    id: 'streamEvents',
    summary:
      'Server-sent events of one conversation (resumable by Last-Event-ID) or live of all: `event` with what is in the log, `stream` with a reply as it is written, `state` with what the machine of an agent went through, `gap` where some of all were dropped',
    query: schemas.StreamQuery,
    answer: { status: 200, type: 'text/event-stream' },
  },
  'POST /api/import': {
    id: 'importTranscript',
    summary: 'Import a transcript: the body is the file',
    query: schemas.ImportQuery,
    answer: { status: 201 },
    bodyType: 'application/octet-stream',
  },
  'GET /api/agents': {
    id: 'listAgents',
    summary: 'The agents',
    answer: { status: 200, schema: listOf('agents', { type: 'object' }) },
  },
  'GET /api/budgets': {
    id: 'listBudgets',
    summary: 'What is spent and held of each budget, in its present period',
    query: schemas.BudgetQuery,
    answer: { status: 200, schema: listOf('budgets', { type: 'object' }) },
  },
  'GET /api/charts': {
    id: 'getCharts',
    summary: 'The machines of agents, conversations and compactions as they are drawn; with an etag',
    answer: { status: 200, schema: { type: 'object', properties: { charts: { type: 'object' } } } },
    also: { 304: {} },
  },
  'GET /api/queues': {
    id: 'getQueues',
    summary:
      'Wakes waiting, running and delayed; of the last 1,000 that this process took within 5 minutes how long they waited, and how many failed',
    answer: { status: 200, schema: QUEUES },
  },
  ...ACCESS_OPERATIONS,
  'GET /metrics': {
    id: 'getMetrics',
    summary: "Numbers in Prometheus' text format",
    answer: { status: 200, type: 'text/plain' },
    errors: [404],
  },
  'GET /healthz': {
    id: 'getHealth',
    summary: 'Whether the process lives; no service is asked, and no token needed',
    answer: { status: 200 },
  },
  'GET /readyz': {
    id: 'getReadiness',
    summary:
      'Whether store and queue are reachable and the process is not stopping, else 503; no token needed',
    answer: { status: 200, schema: READINESS },
    also: { 503: { type: JSON_TYPE, schema: READINESS } },
  },
};

const documents = new Map<boolean, object>();

/**
 * The API in OpenAPI 3.1, from the schemas that the routes check with. `keyless`: who sends no credential is let in, too.
 * `base`: the path that the app is mounted at, as its clients see it.
 */
export function openApiDocument({
  keyless = false,
  base = '',
}: { keyless?: boolean; base?: string } = {}): object {
  const described = documents.get(keyless) ?? describe(keyless);
  documents.set(keyless, described);
  return { ...described, servers: [{ url: base || '/' }] };
}

function describe(keyless: boolean): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const [route, operation] of Object.entries(OPERATIONS)) {
    const [method = '', path = ''] = route.split(' ');
    (paths[path] ??= {})[method.toLowerCase()] = describeOperation(route, operation, OPERATIONS, keyless);
  }
  return {
    openapi: '3.1.0',
    info: { title: 'Troupe', version: '1' },
    paths,
    components: {
      schemas: { Event: schemaOf(Event), Prompt: schemaOf(Inspected), Error: ERROR },
      responses: ERROR_RESPONSES,
      securitySchemes: {
        bearer: {
          type: 'http',
          scheme: 'bearer',
          description:
            "A key, a user's token, or the token of the server; a server on loopback may ask for none",
        },
      },
    },
  };
}
