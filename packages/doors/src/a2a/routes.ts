import { createHash } from 'node:crypto';
import type { Context } from 'hono';
import * as z from 'zod';
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import {
  RpcRequest,
  errorInfo,
  type Problem,
  problemOf,
  camelCase,
  a2aError,
  PROTOCOL_VERSION,
} from './protocol.ts';
import {
  type Caller,
  defineDoor,
  defineRoute,
  type DoorServer,
  methodRefused,
  parseInput,
  typed,
  openStream,
  withHeartbeats,
  Refusal,
  readOneMessage,
} from '../http.ts';
import {
  AgentId,
  canonicalJson,
  type Door,
  type PublicSigningKey,
  type Clock,
  toTroupeError,
  tryParse,
} from '../troupe.ts';
import { dataFrame } from '../speech.ts';
import { agentIn, cardOf, type Call, operate, type Reply } from './operations.ts';
import { type Repositories, createTaskPushes } from './pushes.ts';

const Card = z.looseObject({ name: z.string(), supportedInterfaces: z.array(z.looseObject({})) });
const KeySet = z.object({ keys: z.array(typed<PublicSigningKey>()) });
const RpcAnswer = z.looseObject({ jsonrpc: z.literal('2.0') });

function agentOf(params: { agent: string }): string {
  return parseInput(z.object({ agent: AgentId }), params, 'the path').agent;
}

/** The card changes with the definition, and a proxy must not give it to clients without a key. */
const CARD_CACHE = 'private, max-age=60';
const TASKS = '/api/a2a/{agent}/tasks';
const AGENT = { agent: { schema: AgentId, example: 'writer' } };

const rpcRoute = {
  method: 'POST',
  params: AGENT,
  scopes: ['read', 'write'],
  summary:
    'The JSON-RPC binding of A2A 1.0: a message to the agent is a task, and its context is the conversation. Needs the header A2A-Version',
  body: RpcRequest,
  example: { jsonrpc: '2.0', id: 1, method: 'ListTasks', params: {} },
  answer: RpcAnswer,
  also: { 200: { type: 'text/event-stream' } },
  errors: [403, 404, 413, 429],
} as const;

const CARD_ROUTES = [
  defineRoute({
    method: 'GET',
    path: '/api/a2a/{agent}/.well-known/agent-card.json',
    params: AGENT,
    scopes: ['read', 'write'],
    id: 'getAgentCard',
    summary: 'The card of an agent, as A2A 1.0 has it',
    answer: Card,
    errors: [404],
    also: { 304: {} },
    headers: ['etag'],
    handle({ context, params, caller }, server) {
      const { signatures, ...card } = cardOf({ context, caller, agent: agentOf(params), server });
      // Computed from the card without its signature, which differs each time.
      const etag = `W/"${createHash('sha256').update(canonicalJson(card)).digest('base64url').slice(0, 27)}"`;
      const headers = { etag, 'cache-control': CARD_CACHE };
      if (context.req.header('if-none-match') === etag) return context.body(null, 304, headers);
      return context.json({ ...card, signatures }, 200, headers);
    },
  }),
  defineRoute({
    method: 'GET',
    path: '/api/a2a/.well-known/jwks.json',
    scopes: ['read', 'write'],
    id: 'getCardKeys',
    summary: 'The public key that the cards of the agents are signed with, as a JSON Web Key Set',
    answer: KeySet,
    handle: ({ troupe }) => ({ keys: [troupe.cardKey.publicKey] }),
  }),
] as const;

/** The A2A door of one troupe, which also sends notifications about its tasks. */
export function a2aDoor(): Door {
  const pushes = createTaskPushes();
  return defineDoor({ name: 'a2a', routes: [...CARD_ROUTES, ...bindings(pushes)], integration: pushes });
}

/** The requests about tasks. */
function bindings(pushes: Repositories) {
  function callAgent({ context, caller }: { context: Context; caller: Caller }, server: DoorServer) {
    const { agent = '' } = context.req.param() as Record<string, string>;
    const { id } = agentIn(caller.troupe, agentOf({ agent }));
    return answerRpc({ context, caller, agent: id, pushes, server });
  }

  /**
   * A request of the HTTP+JSON binding. Paths, parameters and errors are the protocol's, which documents them, so they are not
   * in Troupe's document.
   */
  function rest(method: 'GET' | 'POST' | 'DELETE', path: string, operation: string) {
    return defineRoute({
      method,
      path,
      scopes: ['read', 'write'],
      id: null,
      summary: `${operation} of A2A 1.0`,
      handle({ context, caller }, server) {
        const { agent = '', task: named, notification: push } = context.req.param() as Record<string, string>;
        const { id } = agentIn(caller.troupe, agentOf({ agent }));
        // No task id ends like this, and GET uses this path without the verb.
        if (operation === 'GetTask' && named?.endsWith(':cancel')) throw methodRefused(context, ['POST']);
        // In a path that ends with a verb, the parameter includes the verb.
        const task = named?.replace(/:(?:cancel|subscribe)$/, '');
        const isAboutPushes = operation.includes('PushNotification');
        const call = { context, caller, agent: id, pushes, server };
        return answerRest(operation, call, { task, push, isAboutPushes });
      },
    });
  }

  return [
    defineRoute({ ...rpcRoute, path: '/api/a2a/{agent}', id: 'callAgent', handle: callAgent }),
    // Some clients add a slash to the card's URL.
    defineRoute({ ...rpcRoute, path: '/api/a2a/{agent}/', id: null, handle: callAgent }),
    rest('POST', '/api/a2a/{agent}/message:send', 'SendMessage'),
    rest('POST', '/api/a2a/{agent}/message:stream', 'SendStreamingMessage'),
    rest('GET', '/api/a2a/{agent}/extendedAgentCard', 'GetExtendedAgentCard'),
    rest('GET', TASKS, 'ListTasks'),
    rest('POST', `${TASKS}/{task}:cancel`, 'CancelTask'),
    rest('POST', `${TASKS}/{task}:subscribe`, 'SubscribeToTask'),
    rest('GET', `${TASKS}/{task}:subscribe`, 'SubscribeToTask'),
    rest('GET', `${TASKS}/{task}`, 'GetTask'),
    rest('POST', `${TASKS}/{task}/pushNotificationConfigs`, 'CreateTaskPushNotificationConfig'),
    rest('GET', `${TASKS}/{task}/pushNotificationConfigs`, 'ListTaskPushNotificationConfigs'),
    rest('GET', `${TASKS}/{task}/pushNotificationConfigs/{notification}`, 'GetTaskPushNotificationConfig'),
    rest(
      'DELETE',
      `${TASKS}/{task}/pushNotificationConfigs/{notification}`,
      'DeleteTaskPushNotificationConfig',
    ),
  ];
}

const FORM: StreamForm = {
  result: dataFrame,
  problem: (problem) => `event: error\ndata: ${JSON.stringify({ error: statusOf(problem) })}\n\n`,
};

/** Operations whose parameters are the body. */
const WITH_BODY: ReadonlySet<string> = new Set([
  'SendMessage',
  'SendStreamingMessage',
  'CreateTaskPushNotificationConfig',
]);

/**
 * Answers a request of the HTTP+JSON binding. `path` has the parameters of the path. An error without a form in the protocol
 * is answered as by any other route.
 */
async function answerRest(operation: string, call: Omit<Call, 'params'>, path: RestPath): Promise<Response> {
  const { context, caller, server } = call;
  try {
    checkVersion(context);
    const params = WITH_BODY.has(operation) ? await bodyOf(context, path) : paramsOf(context, path);
    const reply = await operate(operation, { ...call, params });
    if (reply.type === 'value') return context.json(reply.value);
    return streamReply(reply, { context, caller, clock: server.clock }, FORM);
  } catch (error) {
    const problem = problemOf(error);
    if (!problem) throw error;
    return context.json({ error: statusOf(problem) }, problem.status as ContentfulStatusCode);
  }
}

/** In requests about the notifications of a task, `id` is the id of a notification's receiver. */
interface RestPath {
  task?: string | undefined;
  push?: string | undefined;
  isAboutPushes: boolean;
}

async function bodyOf(context: Context, { task }: RestPath): Promise<unknown> {
  const body = await readBody(context);
  return task === undefined ? body : { ...(body as object), taskId: task };
}

const NUMBERS: ReadonlySet<string> = new Set(['historyLength', 'pageSize']);
const FLAGS: Readonly<Record<string, boolean>> = { true: true, false: false };

/** The query parameters, converted to their types. A value that is not a number or boolean stays text, and is refused. */
function paramsOf({ req }: Context, { task, push, isAboutPushes }: RestPath): object {
  const given = Object.entries(req.query()).map(([spelling, text]) => {
    const name = camelCase(spelling);
    if (NUMBERS.has(name) && /^\d{1,9}$/.test(text)) return [name, Number(text)];
    if (name === 'includeArtifacts') return [name, FLAGS[text] ?? text];
    return [name, text];
  });
  const query = Object.fromEntries(given) as object;
  if (isAboutPushes) return { ...query, taskId: task, ...(push !== undefined && { id: push }) };
  return { ...query, ...(task !== undefined && { id: task }) };
}

/** `google.rpc.Status` */
function statusOf(problem: Problem): object {
  const { status, name, message } = problem;
  return { code: status, status: name, message, details: errorInfo(problem) };
}

type RpcId = string | number | null;
const INTERNAL = -32_603;

/** Answers a JSON-RPC request. An error without a form in the protocol is answered as by any other route. */
async function answerRpc(call: Omit<Call, 'params'>): Promise<Response> {
  const { context, caller, server } = call;
  let id: RpcId = null;
  try {
    const request = readRequest(await readBody(context));
    id = request.id ?? null;
    checkVersion(context);
    const reply = await operate(request.method, { ...call, params: request.params ?? {} });
    if (reply.type === 'value') return context.json({ jsonrpc: '2.0', id, result: reply.value });
    return streamReply(reply, { context, caller, clock: server.clock }, formOf(id));
  } catch (error) {
    const problem = problemOf(error);
    if (!problem) throw error;
    return context.json({ jsonrpc: '2.0', id, error: rpcError(problem) });
  }
}

function readRequest(body: unknown) {
  const request = tryParse(RpcRequest, body);
  if (!request.success) throw a2aError('INVALID_REQUEST', 'the body is no request of JSON-RPC 2.0');
  return request.data;
}

function rpcError(problem: Problem): object {
  const { code, message } = problem;
  return { code, message, ...(code !== INTERNAL && code > -32_100 && { data: errorInfo(problem) }) };
}

function formOf(id: RpcId): StreamForm {
  return {
    result: (result) => dataFrame({ jsonrpc: '2.0', id, result }),
    problem: (problem) => dataFrame({ jsonrpc: '2.0', id, error: rpcError(problem) }),
  };
}

/** How a binding writes a stream, as text of server-sent events. */
interface StreamForm {
  result: (result: object) => string;
  /** An error in the middle of the stream. */
  problem: (problem: Problem) => string;
}

interface StreamParts {
  context: Context;
  caller: Caller;
  clock: Clock;
}

function streamReply(
  { place, tell }: Extract<Reply, { type: 'stream' }>,
  { context, caller, clock }: StreamParts,
  form: StreamForm,
): Response {
  async function* frames(ends: AbortSignal): AsyncGenerator<string, void> {
    try {
      for await (const result of tell(ends)) yield form.result(result);
    } catch (error) {
      if (!ends.aborted) yield form.problem(problemOf(error) ?? internal(error));
    }
  }
  const write = (ends: AbortSignal) => withHeartbeats(frames(ends), { clock, ends });
  return openStream(context, write, { caller, clock, place });
}

function internal(error: unknown): Problem {
  const { code, message } = toTroupeError(error);
  return {
    code: -32_603,
    status: 500,
    name: 'INTERNAL',
    reason: 'INTERNAL_ERROR',
    message: `${code}: ${message}`,
  };
}

/** Throws PARSE_ERROR, CONTENT_TYPE_NOT_SUPPORTED, and the errors of every route. */
async function readBody(context: Context): Promise<unknown> {
  try {
    return await readOneMessage(context);
  } catch (error) {
    if (error instanceof Refusal && error.code === 'content_type_refused')
      throw a2aError('CONTENT_TYPE_NOT_SUPPORTED', error.message);
    const { code, message } = toTroupeError(error);
    if (code === 'event_invalid') throw a2aError('PARSE_ERROR', message);
    throw error;
  }
}

const VERSION = 'a2a-version';

/** Throws VERSION_NOT_SUPPORTED. A request without the header has version 0.3. */
function checkVersion({ req }: Context): void {
  const given = req.header(VERSION) || req.query('A2A-Version') || '0.3';
  if (given === PROTOCOL_VERSION) return;
  const message = `this agent speaks A2A ${PROTOCOL_VERSION}, not ${given.slice(0, 20)}: send the header A2A-Version`;
  throw a2aError('VERSION_NOT_SUPPORTED', message);
}
