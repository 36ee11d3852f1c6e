import type { Context } from 'hono';
import { ulid } from 'ulid';
import * as z from 'zod';
import type { Answer } from '../../asking/answer.ts';
import { ChatRequest, saidIn } from '../../doors/openai/chat-request.ts';
import {
  completion,
  completionChunk,
  completionEnd,
  type CompletionHead,
} from '../../doors/openai/completion.ts';
import { createSpeech } from '../../doors/speech.ts';
import { toTroupeError } from '../../errors.ts';
import { ConversationId } from '../../events/index.ts';
import type { Troupe } from '../../troupe.ts';
import type { Caller } from '../access/caller.ts';
import { beginExchange, type Exchange, wholeAnswer } from '../exchange.ts';
import { openStream, withHeartbeats } from '../open-stream.ts';
import { defineRoute, type RouteServer } from '../route.ts';
import { ConversationPath, parseInput } from '../schemas.ts';

/** The model that stands for whoever the conversation's routing names. */
const ROUTED = 'troupe';
const CONVERSATION_HEADER = 'x-troupe-conversation';

const Completion = z.looseObject({ id: z.string(), object: z.string() });
const Models = z.object({ object: z.literal('list'), data: z.array(z.looseObject({ id: z.string() })) });

interface Asked {
  context: Context;
  caller: Caller;
  body: ChatRequest;
  /** Null: a new one. */
  conversation: string | null;
}

async function complete(
  { context, caller, body, conversation: named }: Asked,
  { clock, signal }: RouteServer,
): Promise<Response> {
  // A repeated request, such as the retry of an SDK, is the same message in the same conversation.
  const key = context.req.header('idempotency-key')?.replaceAll(/[^A-Za-z0-9._-]/g, '-');
  const conversation =
    named ?? ConversationId.parse(`openai-${key ?? ulid(clock.now()).toLowerCase()}`.slice(0, 100));
  const { model } = body;
  const exchange = await beginExchange(caller, {
    conversation,
    channel: 'openai',
    ...saidIn(body, { isNew: named === null }),
    ...(key !== undefined && { id: `openai-${key}`.slice(0, 256) }),
    ...(model !== ROUTED && { to: [model] }),
  });
  const head = {
    id: `chatcmpl-${conversation}-${exchange.seq}`,
    created: Math.floor(exchange.at / 1_000),
    model,
  };
  const textOf = createSpeech(conversation, namesIn(caller.troupe));
  const headers = { [CONVERSATION_HEADER]: conversation };
  if (body.stream !== true) {
    let text = '';
    const see = (change: Parameters<typeof textOf>[0]) => void (text += textOf(change));
    const answer = await wholeAnswer(context, exchange, { caller, signal, see });
    const failure = failureOf(answer);
    if (failure) return context.json({ error: failure }, 502, headers);
    return context.json(completion(head, text, answer), 200, headers);
  }
  const withUsage = body.stream_options?.include_usage === true;
  const write = (ends: AbortSignal) =>
    withHeartbeats(chunks(exchange, { head, textOf, withUsage, ends }), { clock, ends });
  return openStream(context, write, { caller, clock, signal, headers });
}

async function* chunks(
  { changes }: Exchange,
  {
    head,
    textOf,
    withUsage,
    ends,
  }: { head: CompletionHead; textOf: ReturnType<typeof createSpeech>; withUsage: boolean; ends: AbortSignal },
): AsyncGenerator<string, void> {
  try {
    yield frame(completionChunk(head, '', true));
    const going = changes(ends);
    let next = await going.next();
    for (; !next.done; next = await going.next()) {
      const text = textOf(next.value);
      if (text !== '') yield frame(completionChunk(head, text, false));
    }
    const failure = failureOf(next.value);
    if (failure) yield frame({ error: failure });
    else for (const each of completionEnd(head, next.value, { usage: withUsage })) yield frame(each);
  } catch (error) {
    if (ends.aborted) return;
    const { code, message } = toTroupeError(error);
    yield frame({ error: { code, message, type: 'troupe_error' } });
  }
  yield 'data: [DONE]\n\n';
}

/** Nobody has answered, and somebody failed. */
function failureOf({ outcome, replies, failures }: Answer): object | null {
  const [failure] = failures;
  if (outcome !== 'failed' || replies.length > 0 || !failure) return null;
  const { agent, code, message } = failure;
  return { code, message: `@${agent}: ${message}`, type: 'troupe_error' };
}

function namesIn({ agents }: Troupe): (agent: string) => string {
  return (agent) => agents.find(({ id }) => id === agent)?.name ?? agent;
}

function frame(value: object): string {
  return `data: ${JSON.stringify(value)}\n\n`;
}

function modelsOf({ agents }: Troupe): z.infer<typeof Models> {
  const ids = [ROUTED, ...agents.map(({ id }) => id)];
  return { object: 'list', data: ids.map((id) => ({ id, object: 'model', created: 0, owned_by: 'troupe' })) };
}

const completing = {
  method: 'POST',
  scopes: ['write'],
  body: ChatRequest,
  answer: Completion,
  also: { 200: { type: 'text/event-stream' }, 502: { schema: z.looseObject({ error: z.unknown() }) } },
  errors: [403, 404, 409, 413, 429],
} as const;

export const openAiRoutes = [
  defineRoute({
    ...completing,
    path: '/api/v1/chat/completions',
    id: 'completeInNewConversation',
    summary:
      'As the Chat Completions API of OpenAI, in a new conversation: `model` is the id of an agent, or `troupe`. The header x-troupe-conversation of the answer has the id of the conversation. With an idempotency-key a repeated request is the same message',
    handle: async ({ context, caller, body }, server) =>
      complete({ context, caller, body: await body(), conversation: null }, server),
  }),
  defineRoute({
    ...completing,
    path: '/api/conversations/{c}/v1/chat/completions',
    id: 'completeInConversation',
    summary:
      'As the Chat Completions API of OpenAI, in this conversation. Of the messages those of the user since the last answer are read: the rest is in the log',
    handle: async ({ context, params, caller, body }, server) => {
      const { conversation } = parseInput(ConversationPath, { conversation: params.c }, 'the path');
      return complete({ context, caller, body: await body(), conversation }, server);
    },
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
    handle: ({ caller }) => modelsOf(caller.troupe),
  }),
] as const;
