import type { Context } from 'hono';
import * as z from 'zod';
import { ChatRequest, saidIn } from '../../doors/openai/chat-request.ts';
import { completion, completionChunk, completionEnd } from '../../doors/openai/completion.ts';
import {
  conversationOf,
  responseId,
  ResponseRequest,
  saidInResponse,
} from '../../doors/openai/response-request.ts';
import { responseEvents, responseOf } from '../../doors/openai/response.ts';
import { TroupeError } from '../../errors.ts';
import type { Troupe } from '../../troupe.ts';
import type { Caller } from '../access/caller.ts';
import { answerAs, type AnswerPlace, type AnswerWriter, ROUTED } from '../openai-exchange.ts';
import { defineRoute, type RouteServer } from '../route.ts';
import { ConversationPath, parseInput } from '../schemas.ts';

const Whole = z.looseObject({ id: z.string(), object: z.string() });
const Models = z.object({ object: z.literal('list'), data: z.array(z.looseObject({ id: z.string() })) });

interface Asked<B> {
  context: Context;
  caller: Caller;
  body: B;
  /** That of the path. Null: it has none. */
  conversation: string | null;
}

function complete(asked: Asked<ChatRequest>, server: RouteServer): Promise<Response> {
  const { body, conversation } = asked;
  const { model, stream, stream_options: options } = body;
  function writerOf({ conversation: id, seq, created }: AnswerPlace): AnswerWriter {
    const head = { id: `chatcmpl-${id}-${seq}`, created, model };
    return {
      whole: (text, answer) => completion(head, text, answer),
      begin: () => [completionChunk(head, '', true)],
      words: (text) => completionChunk(head, text, false),
      end: (_, answer) => completionEnd(head, answer, { usage: options?.include_usage === true }),
      fail: (_, error) => ({ error }),
      frame: (event) => `data: ${JSON.stringify(event)}\n\n`,
      last: 'data: [DONE]\n\n',
    };
  }
  const said = saidIn(body, { isNew: conversation === null });
  return answerAs({ ...asked, model, said, isStreamed: stream === true }, writerOf, server);
}

function respond(asked: Asked<ResponseRequest>, server: RouteServer): Promise<Response> {
  const { body } = asked;
  const named = conversationOf(body);
  if (asked.conversation !== null && named !== null && named !== asked.conversation)
    throw new TroupeError('event_invalid', `conversation: the path names "${asked.conversation}"`, {
      path: 'conversation',
    });
  const { conversation } = parseInput(
    ConversationPath.partial(),
    { conversation: asked.conversation ?? named ?? undefined },
    'the body',
  );
  function writerOf({ conversation: id, seq, created }: AnswerPlace): AnswerWriter {
    const head = { id: responseId(id, seq), created, model: body.model, conversation: id };
    const events = responseEvents(head);
    return {
      ...events,
      whole: (text, answer) => responseOf(head, text, { status: 'completed', answer }),
      frame: (event) => `event: ${(event as { type: string }).type}\ndata: ${JSON.stringify(event)}\n\n`,
      last: '',
    };
  }
  const said = saidInResponse(body, { isNew: conversation === undefined });
  const request = { ...asked, conversation: conversation ?? null, model: body.model, said };
  return answerAs({ ...request, isStreamed: body.stream === true }, writerOf, server);
}

function modelsOf({ agents }: Troupe): z.infer<typeof Models> {
  const ids = [ROUTED, ...agents.map(({ id }) => id)];
  return { object: 'list', data: ids.map((id) => ({ id, object: 'model', created: 0, owned_by: 'troupe' })) };
}

const answering = {
  method: 'POST',
  scopes: ['write'],
  answer: Whole,
  also: { 200: { type: 'text/event-stream' }, 502: { schema: z.looseObject({ error: z.unknown() }) } },
  errors: [403, 404, 409, 413, 429],
} as const;

const CHAT_EXAMPLE = { model: 'writer', messages: [{ role: 'user', content: 'Hello' }] };

function idIn({ c }: { c: string }): string {
  return parseInput(ConversationPath, { conversation: c }, 'the path').conversation;
}

export const openAiRoutes = [
  defineRoute({
    ...answering,
    path: '/api/v1/chat/completions',
    id: 'completeInNewConversation',
    body: ChatRequest,
    example: CHAT_EXAMPLE,
    summary:
      'As the Chat Completions API of OpenAI, in a new conversation: `model` is the id of an agent, or `troupe`. The header x-troupe-conversation of the answer has the id of the conversation. With an idempotency-key a repeated request is the same message',
    handle: async ({ context, caller, body }, server) =>
      complete({ context, caller, body: await body(), conversation: null }, server),
  }),
  defineRoute({
    ...answering,
    path: '/api/conversations/{c}/v1/chat/completions',
    id: 'completeInConversation',
    body: ChatRequest,
    example: CHAT_EXAMPLE,
    summary:
      'As the Chat Completions API of OpenAI, in this conversation. Of the messages those of the user since the last answer are read: the rest is in the log',
    handle: async ({ context, params, caller, body }, server) =>
      complete({ context, caller, body: await body(), conversation: idIn(params) }, server),
  }),
  defineRoute({
    ...answering,
    path: '/api/v1/responses',
    id: 'respond',
    body: ResponseRequest,
    example: { model: 'writer', input: 'Hello' },
    summary:
      'As the Responses API of OpenAI, in the conversation that `conversation` or `previous_response_id` names, or in a new one',
    handle: async ({ context, caller, body }, server) =>
      respond({ context, caller, body: await body(), conversation: null }, server),
  }),
  defineRoute({
    ...answering,
    path: '/api/conversations/{c}/v1/responses',
    id: 'respondInConversation',
    body: ResponseRequest,
    example: { model: 'writer', input: 'Hello' },
    summary: 'As the Responses API of OpenAI, in this conversation',
    handle: async ({ context, params, caller, body }, server) =>
      respond({ context, caller, body: await body(), conversation: idIn(params) }, server),
  }),
  defineRoute({
    method: 'GET',
    path: '/api/v1/models',
    scopes: ['read', 'write'],
    id: 'listModels',
    summary: 'The agents, as the Models API of OpenAI lists models',
    answer: Models,
    handle: ({ caller }) => modelsOf(caller.troupe),
  }),
  defineRoute({
    method: 'GET',
    path: '/api/conversations/{c}/v1/models',
    scopes: ['read', 'write'],
    id: 'listModelsOfConversation',
    summary: 'The same as /api/v1/models, below the base URL of a conversation',
    answer: Models,
    handle({ caller, params }) {
      idIn(params);
      return modelsOf(caller.troupe);
    },
  }),
] as const;
