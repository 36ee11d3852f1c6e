import { createHash } from 'node:crypto';
import type { Context } from 'hono';
import * as z from 'zod';
import { RpcRequest } from './requests.ts';
import {
  type Caller,
  defineDoor,
  defineRoute,
  type DoorServer,
  methodRefused,
  parseInput,
  typed,
} from '../http.ts';
import { AgentId, canonicalJson, type Door, type PublicSigningKey } from '../troupe.ts';
import { agentIn, cardOf } from './card.ts';
import { answerRpc } from './json-rpc.ts';
import { answerRest } from './rest.ts';
import type { Repositories } from './pushes.ts';
import { createTaskPushes } from './task-pushes.ts';

const Card = z.looseObject({ name: z.string(), supportedInterfaces: z.array(z.looseObject({})) });
const KeySet = z.object({ keys: z.array(typed<PublicSigningKey>()) });
const RpcAnswer = z.looseObject({ jsonrpc: z.literal('2.0') });

function agentOf(params: { agent: string }): string {
  return parseInput(z.object({ agent: AgentId }), params, 'the path').agent;
}

/** It changes with the definition. A proxy must not give it to those without a key. */
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
      // The signature of the same card is another each time.
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

/** A door for one troupe, with the notifications of its tasks. */
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
   * A request of the HTTP+JSON binding. Its paths, parameters and errors are those of the protocol, which describes them: they
   * are not in our document.
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
        // No id ends so, and GET has this path without the verb.
        if (operation === 'GetTask' && named?.endsWith(':cancel')) throw methodRefused(context, ['POST']);
        // The parameter of a path that ends with a verb has the verb, too.
        const task = named?.replace(/:(?:cancel|subscribe)$/, '');
        const isAboutPushes = operation.includes('PushNotification');
        const call = { context, caller, agent: id, pushes, server };
        return answerRest(operation, call, { task, push, isAboutPushes });
      },
    });
  }

  return [
    defineRoute({ ...rpcRoute, path: '/api/a2a/{agent}', id: 'callAgent', handle: callAgent }),
    // Clients add the slash to the address that the card has.
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
