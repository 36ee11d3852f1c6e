import { ulid } from 'ulid';
import * as z from 'zod';
import {
  authorOf,
  beginExchange,
  type Caller,
  callersKey,
  changesSince,
  checkScope,
  defineDoor,
  defineRoute,
  type DoorServer,
  holdPlace,
  newConversation,
  readAs,
} from '../http.ts';
import { ConversationId } from '../troupe.ts';
import type { McpHost } from './call-tool.ts';

const CHANNEL = 'mcp';
const jsonrpc = z.literal('2.0');
const Id = z.union([z.string(), z.int()]);
const Fields = z.looseObject({});
const Message = z.union([
  z.strictObject({ jsonrpc, method: z.string(), id: Id.optional(), params: Fields.optional() }),
  z.strictObject({ jsonrpc, id: Id, result: Fields }),
  z.strictObject({
    jsonrpc,
    id: Id.optional(),
    error: z.looseObject({ code: z.int(), message: z.string() }),
  }),
]);
const Messages = z.union([Message, z.array(Message).min(1).max(20)]);
const JsonRpc = z.unknown();

function hostFor(
  caller: Caller,
  key: string | undefined,
  { clock, signal, version, onError }: DoorServer,
): McpHost {
  const { principal, troupe } = caller;
  return {
    troupe,
    scopes: principal.scopes,
    clock,
    version,
    ends: signal,
    onError,
    newConversation: (name) => newConversation(principal, `mcp-${name ?? ulid(clock.now()).toLowerCase()}`),
    // Each client numbers its own requests, so a request's id alone is not unique.
    keyOf: (request) => (key === undefined ? null : callersKey(principal, key, `${request}`)),
    async send({ conversation, content, agent, id }) {
      checkScope(principal, 'write');
      const said = { conversation, channel: CHANNEL, content, id };
      const { seq } = await beginExchange(caller, { ...said, ...(agent !== undefined && { to: [agent] }) });
      return { conversation: ConversationId.parse(conversation), seq };
    },
    async command(command) {
      checkScope(principal, command.command === 'run' ? 'operate' : 'write');
      return troupe.command(command, authorOf(caller));
    },
    changes: (id, ends) => changesSince(troupe, id, ends),
    async call(work) {
      const place = holdPlace({ caller, clock });
      try {
        return await work(place.ends);
      } finally {
        place.end();
      }
    },
    read: (work) => readAs(caller, work),
  };
}

/** The request without its body, which was already read. A client that accepts anything accepts the required types. */
function plainRequest({ url, headers: given, signal }: Request): Request {
  const headers = new Headers(given);
  if ((headers.get('accept') ?? '*/*') === '*/*')
    headers.set('accept', 'application/json, text/event-stream');
  return new Request(url, { method: 'POST', headers, signal });
}

/** There are no sessions, so another process may answer the next request. */
const mcpRoute = defineRoute({
  method: 'POST',
  path: '/api/mcp',
  needsNoToken: true,
  scopes: ['read', 'write'],
  id: 'callMcp',
  summary:
    'The streamable HTTP transport of the Model Context Protocol: agents as tools, conversations and prompts as resources. With an idempotency-key a repeated call sends no second message',
  body: Messages,
  example: { jsonrpc: '2.0', id: 1, method: 'tools/list' },
  answer: JsonRpc,
  also: {
    200: { type: 'text/event-stream' },
    202: {},
    400: { schema: JsonRpc },
    404: { schema: JsonRpc },
    406: { schema: JsonRpc },
  },
  errors: [403, 413, 429],
  async handle({ context, caller, body }, server) {
    const message = await body();
    const { answerMcp } = await import('./server.ts');
    const host = hostFor(caller, context.req.header('idempotency-key'), server);
    return answerMcp(host, plainRequest(context.req.raw), message);
  },
});

export const mcp = defineDoor({ name: 'mcp', routes: [mcpRoute] });
