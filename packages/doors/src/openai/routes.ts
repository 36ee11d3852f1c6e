import type { Context } from 'hono';
import * as z from 'zod';
import {
  type Caller,
  ConversationPath,
  Flag,
  type DoorServer,
  defineDoor,
  defineRoute,
  parseInput,
} from '../http.ts';
import { AgentId, type Troupe, TroupeError } from '../troupe.ts';
import { ChatRequest, formatOfChat, heardInChat } from './chat-request.ts';
import { completion, completionBegin, completionChunk, completionEnd } from './completion.ts';
import {
  conversationOf,
  formatOfResponse,
  heardInResponse,
  responseId,
  ResponseRequest,
} from './response-request.ts';
import { responseWriter } from './response.ts';
import { invalid } from './said.ts';
import { answerAs, type AnswerPlace, type AnswerWriter, ROUTED } from './answer.ts';
import { inputItems, toldResponse } from './told-response.ts';

const Whole = z.looseObject({ id: z.string(), object: z.string() });
const Model = z.object({
  id: z.string(),
  object: z.literal('model'),
  created: z.literal(0),
  owned_by: z.literal('troupe'),
});
const MODEL = { schema: AgentId, example: 'writer' };
const RESPONSE = {
  schema: z.string().regex(/^resp_[A-Za-z0-9._@:-]{1,128}_\d{1,15}(_unstored)?$/),
  example: 'resp_main_1',
};
const Models = z.object({ object: z.literal('list'), data: z.array(Model) });
const Items = z.object({
  object: z.literal('list'),
  data: z.array(z.looseObject({ id: z.string() })),
  first_id: z.string().nullable(),
  last_id: z.string().nullable(),
  has_more: z.literal(false),
});

interface Asked<B> {
  context: Context;
  caller: Caller;
  body: B;
  /** That of the path. Null: it has none. */
  conversation: string | null;
}

function complete(asked: Asked<ChatRequest>, server: DoorServer): Promise<Response> {
  const { body } = asked;
  const { model, stream, stream_options: options } = body;
  const format = formatOfChat(body);
  function writerOf({ conversation: id, seq, created }: AnswerPlace): AnswerWriter {
    const head = { id: `chatcmpl-${id}-${seq}`, created, model };
    return {
      whole: (parts, answer) => completion(head, parts, answer),
      begin: () => [completionBegin(head)],
      words: (text) => completionChunk(head, text),
      end: (parts, answer) =>
        completionEnd(head, {
          parts: format ? parts : [],
          answer,
          usage: options?.include_usage === true,
        }),
      fail: (_, error) => ({ error }),
      frame: (event) => `data: ${JSON.stringify(event)}\n\n`,
      last: 'data: [DONE]\n\n',
    };
  }
  const request = { ...asked, model, format, heard: heardInChat(body), isStreamed: stream === true };
  return answerAs(request, writerOf, server);
}

function respond(asked: Asked<ResponseRequest>, server: DoorServer): Promise<Response> {
  const { body } = asked;
  const { model, metadata, store, stream } = body;
  const named = conversationOf(body);
  if (asked.conversation !== null && named !== null && named !== asked.conversation)
    throw invalid('conversation', `the path names "${asked.conversation}"`);
  const { conversation = null } = parseInput(
    ConversationPath.partial(),
    { conversation: asked.conversation ?? named ?? undefined },
    'the body',
  );
  const format = formatOfResponse(body);
  function writerOf({ conversation: id, seq, created }: AnswerPlace): AnswerWriter {
    const isStored = store !== false;
    return responseWriter({
      id: responseId({ conversation: id, seq, isStored }),
      created,
      model,
      conversation: id,
      isStored,
      metadata: metadata ?? {},
      format,
    });
  }
  const request = { ...asked, conversation, model, format, heard: heardInResponse(body) };
  return answerAs({ ...request, isStreamed: stream === true }, writerOf, server);
}

function modelNamed(id: string): z.infer<typeof Model> {
  return { id, object: 'model', created: 0, owned_by: 'troupe' };
}

function modelsOf({ agents }: Troupe): z.infer<typeof Models> {
  return { object: 'list', data: [ROUTED, ...agents.map(({ id }) => id)].map(modelNamed) };
}

function modelOf({ agents }: Troupe, id: string): z.infer<typeof Model> {
  if (id === ROUTED || agents.some((agent) => agent.id === id)) return modelNamed(id);
  throw new TroupeError('agent_unknown', `there is no agent "${id}"; the list of models names them`, {
    agent: id,
  });
}

const answering = {
  method: 'POST',
  scopes: ['write'],
  answer: Whole,
  also: {
    200: { type: 'text/event-stream' },
    422: { schema: z.looseObject({ error: z.unknown() }) },
    502: { schema: z.looseObject({ error: z.unknown() }) },
  },
  errors: [403, 404, 409, 413, 429],
} as const;

const reading = { method: 'GET', scopes: ['read'], errors: [404, 429] } as const;

const telling = {
  query: z.object({ stream: Flag.optional() }),
  answer: Whole,
  also: { 200: { type: 'text/event-stream' } },
} as const;

const CHAT_EXAMPLE = { model: 'writer', messages: [{ role: 'user', content: 'Hello' }] };

function idIn(params: { conversation: string }): string {
  return parseInput(ConversationPath, params, 'the path').conversation;
}

const openAiRoutes = [
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
    path: '/api/conversations/{conversation}/v1/chat/completions',
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
    path: '/api/conversations/{conversation}/v1/responses',
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
    path: '/api/conversations/{conversation}/v1/models',
    scopes: ['read', 'write'],
    id: 'listModelsOfConversation',
    summary: 'The same as /api/v1/models, below the base URL of a conversation',
    answer: Models,
    handle({ caller, params }) {
      idIn(params);
      return modelsOf(caller.troupe);
    },
  }),
  defineRoute({
    method: 'GET',
    path: '/api/v1/models/{model}',
    params: { model: MODEL },
    scopes: ['read', 'write'],
    id: 'getModel',
    summary: 'One agent, as a model of OpenAI',
    answer: Model,
    errors: [404],
    handle: ({ caller, params }) => modelOf(caller.troupe, params.model),
  }),
  defineRoute({
    method: 'GET',
    path: '/api/conversations/{conversation}/v1/models/{model}',
    params: { model: MODEL },
    scopes: ['read', 'write'],
    id: 'getModelOfConversation',
    summary: 'The same as /api/v1/models/{model}, below the base URL of a conversation',
    answer: Model,
    errors: [404],
    handle({ caller, params }) {
      idIn(params);
      return modelOf(caller.troupe, params.model);
    },
  }),
  defineRoute({
    ...reading,
    path: '/api/v1/responses/{response}',
    params: { response: RESPONSE },
    id: 'getResponse',
    summary:
      'An answer of the Responses API by its id: as it is in the log, or in_progress. With `stream` its events, from the first to the end',
    ...telling,
    handle: ({ context, caller, params, query }, server) =>
      toldResponse({ context, caller, id: params.response, isStreamed: query.stream === true }, server),
  }),
  defineRoute({
    ...reading,
    path: '/api/conversations/{conversation}/v1/responses/{response}',
    params: { response: RESPONSE },
    id: 'getResponseOfConversation',
    summary: 'The same, below the base URL of its conversation',
    ...telling,
    handle: ({ context, caller, params, query }, server) =>
      toldResponse(
        { context, caller, id: params.response, within: idIn(params), isStreamed: query.stream === true },
        server,
      ),
  }),
  defineRoute({
    ...reading,
    path: '/api/v1/responses/{response}/input_items',
    params: { response: RESPONSE },
    id: 'listInputItems',
    summary:
      'The message that an answer of the Responses API is about. What was said before is in the conversation',
    answer: Items,
    handle: ({ caller, params }) => inputItems({ caller, id: params.response }),
  }),
  defineRoute({
    ...reading,
    path: '/api/conversations/{conversation}/v1/responses/{response}/input_items',
    params: { response: RESPONSE },
    id: 'listInputItemsOfConversation',
    summary: 'The same, below the base URL of its conversation',
    answer: Items,
    handle: ({ caller, params }) => inputItems({ caller, id: params.response, within: idIn(params) }),
  }),
] as const;

export const openAi = defineDoor({ name: 'openai', routes: openAiRoutes });
