import * as z from 'zod';
import { Flag, defineDoor, defineRoute } from '../http.ts';
import { AgentId, TroupeError } from '../troupe.ts';
import { type ApiRequest, conversationIn, ROUTED } from './answer.ts';
import { ChatRequest, complete } from './chat.ts';
import { inputItems, respond, ResponseRequest, toldResponse } from './responses.ts';

const Whole = z.looseObject({ id: z.string(), object: z.string() });
const Model = z.object({
  id: z.string(),
  object: z.literal('model'),
  created: z.literal(0),
  owned_by: z.literal('troupe'),
});
const Models = z.object({ object: z.literal('list'), data: z.array(Model) });
const Items = z.object({
  object: z.literal('list'),
  data: z.array(z.looseObject({ id: z.string() })),
  first_id: z.string().nullable(),
  last_id: z.string().nullable(),
  has_more: z.literal(false),
});

type Asked = Omit<ApiRequest<never>, 'body'>;

function listModels(asked: Pick<Asked, 'caller' | 'params'>): z.infer<typeof Models> {
  conversationIn(asked);
  const { agents } = asked.caller.troupe;
  return { object: 'list', data: [ROUTED, ...agents.map(({ id }) => id)].map(modelNamed) };
}

function readModel(
  asked: Pick<Asked, 'caller'> & { params: Asked['params'] & { model: string } },
): z.infer<typeof Model> {
  conversationIn(asked);
  const { model: id } = asked.params;
  if (id === ROUTED || asked.caller.troupe.agents.some((agent) => agent.id === id)) return modelNamed(id);
  const message = `there is no agent "${id}"; the list of models names them`;
  throw new TroupeError('agent_unknown', message, { agent: id });
}

function modelNamed(id: string): z.infer<typeof Model> {
  return { id, object: 'model', created: 0, owned_by: 'troupe' };
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
const completing = {
  ...answering,
  body: ChatRequest,
  example: { model: 'writer', messages: [{ role: 'user', content: 'Hello' }] },
  handle: complete,
} as const;
const responding = {
  ...answering,
  body: ResponseRequest,
  example: { model: 'writer', input: 'Hello' },
  handle: respond,
} as const;
const listing = {
  method: 'GET',
  scopes: ['read', 'write'],
  answer: Models,
  handle: listModels,
} as const;
const MODEL = { schema: AgentId, example: 'writer' };
const reading = {
  ...listing,
  params: { model: MODEL },
  answer: Model,
  errors: [404],
  handle: readModel,
} as const;
const RESPONSE = {
  schema: z.string().regex(/^resp_[A-Za-z0-9._@:-]{1,128}_\d{1,15}(_unstored)?$/),
  example: 'resp_main_1',
};
const telling = {
  method: 'GET',
  scopes: ['read'],
  params: { response: RESPONSE },
  errors: [404, 429],
  query: z.object({ stream: Flag.optional() }),
  answer: Whole,
  also: { 200: { type: 'text/event-stream' } },
  handle: toldResponse,
} as const;
const itemising = {
  method: 'GET',
  scopes: ['read'],
  params: { response: RESPONSE },
  errors: [404, 429],
  answer: Items,
  handle: inputItems,
} as const;

/** Each path exists below `/api/v1` and below the base URL of a conversation. */
const openAiRoutes = [
  defineRoute({
    ...completing,
    path: '/api/v1/chat/completions',
    id: 'completeInNewConversation',
    summary:
      'As the Chat Completions API of OpenAI, in a new conversation: `model` is the id of an agent, or `troupe`. The header x-troupe-conversation of the answer has the id of the conversation. With an idempotency-key a repeated request is the same message',
  }),
  defineRoute({
    ...completing,
    path: '/api/conversations/{conversation}/v1/chat/completions',
    id: 'completeInConversation',
    summary:
      'As the Chat Completions API of OpenAI, in this conversation. Of the messages those of the user since the last answer are read: the rest is in the log',
  }),
  defineRoute({
    ...responding,
    path: '/api/v1/responses',
    id: 'respond',
    summary:
      'As the Responses API of OpenAI, in the conversation that `conversation` or `previous_response_id` names, or in a new one',
  }),
  defineRoute({
    ...responding,
    path: '/api/conversations/{conversation}/v1/responses',
    id: 'respondInConversation',
    summary: 'As the Responses API of OpenAI, in this conversation',
  }),
  defineRoute({
    ...listing,
    path: '/api/v1/models',
    id: 'listModels',
    summary: 'The agents, as the Models API of OpenAI lists models',
  }),
  defineRoute({
    ...listing,
    path: '/api/conversations/{conversation}/v1/models',
    id: 'listModelsOfConversation',
    summary: 'The same as /api/v1/models, below the base URL of a conversation',
  }),
  defineRoute({
    ...reading,
    path: '/api/v1/models/{model}',
    id: 'getModel',
    summary: 'One agent, as a model of OpenAI',
  }),
  defineRoute({
    ...reading,
    path: '/api/conversations/{conversation}/v1/models/{model}',
    id: 'getModelOfConversation',
    summary: 'The same as /api/v1/models/{model}, below the base URL of a conversation',
  }),
  defineRoute({
    ...telling,
    path: '/api/v1/responses/{response}',
    id: 'getResponse',
    summary:
      'An answer of the Responses API by its id: as it is in the log, or in_progress. With `stream` its events, from the first to the end',
  }),
  defineRoute({
    ...telling,
    path: '/api/conversations/{conversation}/v1/responses/{response}',
    id: 'getResponseOfConversation',
    summary: 'The same, below the base URL of its conversation',
  }),
  defineRoute({
    ...itemising,
    path: '/api/v1/responses/{response}/input_items',
    id: 'listInputItems',
    summary:
      'The message that an answer of the Responses API is about. What was said before is in the conversation',
  }),
  defineRoute({
    ...itemising,
    path: '/api/conversations/{conversation}/v1/responses/{response}/input_items',
    id: 'listInputItemsOfConversation',
    summary: 'The same, below the base URL of its conversation',
  }),
] as const;

export const openAi = defineDoor({ name: 'openai', routes: openAiRoutes });
