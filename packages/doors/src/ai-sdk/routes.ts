import type { Context } from 'hono';
import * as z from 'zod';
import {
  type Caller,
  ConversationPath,
  type HeldPlace,
  type DoorServer,
  Seq,
  beginExchange,
  checkScope,
  checkWords,
  defineDoor,
  defineRoute,
  giveCommand,
  openStream,
  parseInput,
  readMessages,
  unknownConversation,
  withHeartbeats,
  withPlace,
} from '../http.ts';
import {
  type ConversationId,
  type Event,
  type Troupe,
  TroupeError,
  isGranted,
  toTroupeError,
  type AttachmentByAddress,
  type NewAttachment,
  tryParse,
} from '../troupe.ts';
import { dataFrame, namesIn } from '../speech.ts';
import { readAskedKey, type UiChunk, startOf, type UiMessage } from './ui-message.ts';
import { UiWriter } from './ui-writer.ts';
import { lookBack, tellExchange } from './exchanges.ts';
import { filePartsIn, readHistory } from './history.ts';

const Id = z.string().min(1).max(256);
const Part = z.looseObject({
  type: z.string().max(256),
  text: z.string().optional(),
  url: z.string().optional(),
  mediaType: z.string().max(255).optional(),
  filename: z.string().max(255).nullish(),
  state: z.string().max(64).optional(),
  approval: z
    .looseObject({
      id: z.string().min(1).max(256),
      approved: z.boolean().nullish(),
      reason: z.string().max(10_000).nullish(),
    })
    .nullish(),
  data: z.unknown().optional(),
});
type Part = z.infer<typeof Part>;
const To = z.array(z.string().min(1).max(128)).max(256);
const Message = z.looseObject({
  id: Id.optional(),
  role: z.enum(['system', 'user', 'assistant']),
  metadata: z.unknown().optional(),
  parts: z.array(Part).max(10_000),
});
const AnswerData = z.looseObject({ question: z.string().min(1).max(256), content: z.string().optional() });

/** What `DefaultChatTransport` posts. Only the newest message is read, because the log has the others. */
const UiChatRequest = z.looseObject({
  /** The client's id of the chat. It is not used: the path names the conversation. */
  id: z.string().max(1_024).optional(),
  messages: z.array(z.unknown()).min(1).max(10_000),
  /** `regenerate-message` sends the answer again. */
  trigger: z.enum(['submit-message', 'regenerate-message']).optional(),
  /** Id of the message that continues after approvals were decided. */
  messageId: Id.nullish(),
  /** Agents to whom the message is addressed. */
  to: To.optional(),
});
type UiChatRequest = z.infer<typeof UiChatRequest>;

interface UiDecision {
  /** Id of the approval in the form that clients have. */
  approval: string;
  approved: boolean;
  note: string;
}

type UiAsked =
  | {
      ask: 'say';
      id: string;
      content: string;
      to: string[] | undefined;
      attachments: (NewAttachment | AttachmentByAddress)[];
    }
  | { ask: 'answer'; question: string; content: string }
  | { ask: 'decide'; decisions: UiDecision[] };

/** Throws `event_invalid`. */
function askedIn({ messages, messageId, to }: UiChatRequest): UiAsked {
  const message = newest(messages, messageId ?? null);
  if (message.role === 'assistant') {
    const decisions = message.parts.flatMap(decisionIn);
    if (decisions.length === 0)
      throw invalid('the last message is neither one of the user nor one with decided approvals');
    return { ask: 'decide', decisions };
  }
  if (message.role !== 'user') throw invalid('the last message must be one of the user');
  if (message.id === undefined) throw invalid('the message needs an id: it makes a repeated request safe');
  const content = message.parts
    .flatMap(({ type, text }) => (type === 'text' && text ? [text] : []))
    .join('\n\n');
  const answer = message.parts.find(({ type }) => type === 'data-answer');
  if (answer) {
    const { success, data } = tryParse(AnswerData, answer.data);
    if (!success) throw invalid('data-answer needs { question }, and the words as text or as content');
    return { ask: 'answer', question: data.question, content: data.content ?? content };
  }
  const attachments = message.parts.flatMap(fileIn);
  if (content === '' && attachments.length === 0) throw invalid('the message says nothing');
  const named = tryParse(z.looseObject({ to: To }), message.metadata);
  return { ask: 'say', id: message.id, content, attachments, to: to ?? named.data?.to };
}

/** The decided message may have others after it. */
function newest(messages: readonly unknown[], messageId: string | null): z.infer<typeof Message> {
  const at = messageId === null ? -1 : messages.findLastIndex((each) => Object(each).id === messageId);
  const index = at >= 0 ? at : messages.length - 1;
  const { success, data, error } = tryParse(Message, messages[index]);
  if (success) return data;
  const [issue] = error.issues;
  throw invalid(`${issue?.path.join('.') ?? ''}: ${issue?.message ?? ''}`, `messages.${index}`);
}

function decisionIn({ state, approval }: Part): UiDecision[] {
  if (state !== 'approval-responded' || !approval || typeof approval.approved !== 'boolean') return [];
  const { id, approved, reason } = approval;
  return [{ approval: id, approved, note: reason ?? '' }];
}

function fileIn({ type, url = '', mediaType, filename }: Part): (NewAttachment | AttachmentByAddress)[] {
  if (type !== 'file') return [];
  const name = filename ? { name: filename } : {};
  const given = mediaType ? { mediaType } : {};
  if (!url.startsWith('data:')) return [{ ...name, ...given, url }];
  const comma = url.indexOf(',');
  const head = url.slice('data:'.length, comma).split(';');
  if (comma < 0 || head.at(-1)?.trim() !== 'base64') throw invalid('files within messages are base64');
  return [
    { ...name, mediaType: mediaType || head[0] || 'application/octet-stream', data: url.slice(comma + 1) },
  ];
}

function invalid(message: string, path = 'messages'): TroupeError {
  return new TroupeError('event_invalid', `${path}: ${message}`, { path });
}

const frame: (chunk: UiChunk) => string = dataFrame;

const CHAT = { schema: z.string().regex(/^[A-Za-z0-9._@:~-]{1,256}$/), example: 'main' };
const ChatPath = z.object({ chat: CHAT.schema });
const VERSION_HEADER = 'x-vercel-ai-ui-message-stream';
const STREAM = 'text/event-stream';

/** The part of an exchange to send: all of it, or changes from a seq on. */
interface Tale {
  root: number;
  from: number;
  threads?: ReadonlyMap<ConversationId, number>;
}

interface Asking {
  caller: Caller;
  conversation: ConversationId;
}

async function answer(context: Context, asking: Asking, server: DoorServer): Promise<Response> {
  // The answers can only be heard by those who may read the conversation.
  checkScope(asking.caller.principal, 'read');
  const body = parseInput(UiChatRequest, await readMessages(context), 'the body');
  const asked = askedIn(body);
  if (asked.ask !== 'decide') checkWords(asked.content);
  const { clock, signal } = server;
  return withPlace({ caller: asking.caller, clock, signal }, async (place) =>
    stream(context, asking, await begin(asking, asked), { ...server, place }),
  );
}

async function begin(asking: Asking, asked: UiAsked): Promise<Tale> {
  switch (asked.ask) {
    case 'say': {
      const { id, content, attachments, to } = asked;
      const said = { id, content, attachments, ...(to && { to }), channel: 'ai-sdk' };
      const { seq } = await beginExchange(asking.caller, { conversation: asking.conversation, ...said });
      return { root: seq, from: seq };
    }
    case 'answer':
      return answerQuestion(asking, asked);
    case 'decide':
      return decide(asking, asked.decisions);
  }
}

async function answerQuestion(
  { caller, conversation: here }: Asking,
  { question, content }: { question: string; content: string },
): Promise<Tale> {
  const { conversation, task } = readAskedKey(question, here);
  const command = { command: 'answer', conversation, question: task, content } as const;
  const event = await giveCommand(caller, command);
  if (event.conversation === here) return { root: event.seq, from: event.seq };
  const root = await exchangeOfThread(caller.troupe, here, event.conversation);
  return { root, from: root, threads: new Map([[event.conversation, 1]]) };
}

/** Executes the decisions, and continues the exchange of the first request. A decision that somebody else made meanwhile stands. */
async function decide(
  { caller, conversation: here }: Asking,
  decisions: readonly UiDecision[],
): Promise<Tale> {
  const { troupe } = caller;
  const { head } = await troupe.events(here, { after: 0, limit: 1 });
  const decided: Event[] = [];
  for (const { approval, approved, note } of decisions) {
    const { conversation, task } = readAskedKey(approval, here);
    const command = { command: 'decide', conversation, request: task, approved } as const;
    const said = { ...command, ...(note !== '' && { note }) };
    try {
      decided.push(await giveCommand(caller, said));
    } catch (error) {
      const earlier = await decisionOf(troupe, conversation, task);
      if (!(error instanceof TroupeError) || error.code !== 'command_refused' || !earlier) throw error;
      decided.push(earlier);
    }
  }
  const threads = new Map<ConversationId, number>();
  for (const { conversation, seq } of decided)
    threads.set(conversation, Math.min(seq, threads.get(conversation) ?? seq));
  const from = threads.get(here);
  threads.delete(here);
  if (from === undefined) {
    const [thread = here] = threads.keys();
    return { root: await exchangeOfThread(troupe, here, thread), from: head + 1, threads };
  }
  const { fold } = await lookBack(troupe, here, (log) => log.fold.ofSeq(from).length > 0);
  return { root: fold.ofSeq(from).at(-1) ?? from, from, threads };
}

async function decisionOf(troupe: Troupe, conversation: string, request: string): Promise<Event | null> {
  const { tasks } = await troupe.tasks(conversation);
  const found = tasks.find((task) => task.kind === 'approval' && task.id === request);
  if (!found?.end) return null;
  const { events } = await troupe.events(conversation, { after: found.end.seq - 1, limit: 1 });
  return events[0] ?? null;
}

/** The exchange in which a thread was opened. For a nested thread, the newest unanswered exchange. */
async function exchangeOfThread(troupe: Troupe, here: ConversationId, thread: string): Promise<number> {
  const { fold, pending } = await lookBack(troupe, here, (log) => log.fold.ofThread(thread).length > 0);
  return fold.ofThread(thread).at(-1) ?? pending.at(-1)?.roots.at(-1) ?? (fold.latest || 1);
}

function stream(
  context: Context,
  { caller, conversation }: Asking,
  tale: Tale,
  { clock, signal, place }: DoorServer & { place?: HeldPlace },
): Response {
  const write = (ends: AbortSignal) => {
    const { troupe, reading } = caller;
    const told = chunks({ ...tale, troupe, conversation, signal: ends });
    return withHeartbeats(reading ? reading.paced(told, ends) : told, { clock, ends });
  };
  return openStream(context, write, {
    caller,
    clock,
    signal,
    headers: { [VERSION_HEADER]: 'v1' },
    ...(place && { place }),
  });
}

async function* chunks(telling: Parameters<typeof tellExchange>[0]): AsyncGenerator<string, void> {
  const { troupe, conversation, root, signal } = telling;
  const writer = new UiWriter({ conversation, nameOf: namesIn(troupe) });
  yield frame(startOf(conversation, root));
  try {
    for await (const { change, isNew } of tellExchange(telling)) {
      const made = writer.write(change);
      if (isNew && made.length > 0) yield made.map(frame).join('');
    }
    if (signal.aborted) return;
    yield writer.end().map(frame).join('');
  } catch (error) {
    if (signal.aborted) return;
    const { code, message } = toTroupeError(error);
    yield frame({ type: 'error', errorText: `${code}: ${message}` });
  }
  yield 'data: [DONE]\n\n';
}

/** The conversation of the path may not exist yet. */
function askingOf(caller: Caller, c: string): Asking {
  const { conversation } = parseInput(ConversationPath, { conversation: c }, 'the path');
  if (!isGranted(caller.principal, conversation)) throw unknownConversation(conversation);
  return { caller, conversation };
}

/** Null if the conversation does not exist. */
async function ifThere<T>(read: () => Promise<T>): Promise<T | null> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof TroupeError && error.code === 'conversation_unknown') return null;
    throw error;
  }
}

async function resume(context: Context, asking: Asking, server: DoorServer): Promise<Response> {
  const { troupe } = asking.caller;
  const log = await ifThere(() => lookBack(troupe, asking.conversation, ({ fold }) => fold.latest > 0));
  const root = log?.pending.findLast(({ roots }) => roots.length > 0)?.roots.at(-1);
  if (root === undefined) return context.body(null, 204);
  return stream(context, asking, { root, from: root }, server);
}

const resuming = {
  method: 'GET',
  scopes: ['read'],
  answerType: STREAM,
  also: { 204: {} },
} as const;
const ShownMessage = z.looseObject({ id: z.string() }) as unknown as z.ZodType<UiMessage>;

const chatRoutes = [
  defineRoute({
    method: 'POST',
    path: '/api/conversations/{conversation}/chat',
    scopes: ['write'],
    id: 'chat',
    summary:
      'What a client of the AI SDK says: its newest message, or its decisions of approvals. Answers with a UI message stream: one message with the words of all agents, `data-author` before those of each. A repeated message is the same one, and is answered from the beginning',
    body: UiChatRequest,
    example: {
      messages: [{ id: 'm1', role: 'user', parts: [{ type: 'text', text: 'Hello' }] }],
      to: ['writer'],
    },
    answerType: STREAM,
    headers: [VERSION_HEADER],
    errors: [502],
    handle: ({ context, params, caller }, server) =>
      answer(context, askingOf(caller, params.conversation), server),
  }),
  defineRoute({
    method: 'GET',
    path: '/api/conversations/{conversation}/chat',
    scopes: ['read'],
    id: 'listChatMessages',
    summary:
      'The conversation as messages of the AI SDK, with the ids that streams give them: the newest exchanges; pass `next` as `before` for earlier ones until it is null',
    query: z.object({ before: Seq.optional() }),
    answer: z.object({ messages: z.array(ShownMessage), next: z.int().nullable() }),
    async handle({ params, caller, query: { before } }) {
      const { troupe, conversation } = { ...askingOf(caller, params.conversation), troupe: caller.troupe };
      const filesOf = filePartsIn(troupe);
      const options = { conversation, before, nameOf: namesIn(troupe), filesOf };
      return (await ifThere(() => readHistory(troupe, options))) ?? { messages: [], next: null };
    },
  }),
  defineRoute({
    ...resuming,
    path: '/api/conversations/{conversation}/chat/stream',
    id: 'resumeChat',
    summary: 'The answer that is under way, from its beginning, as the POST gives it. 204: none is',
    handle: ({ context, params, caller }, server) =>
      resume(context, askingOf(caller, params.conversation), server),
  }),
  defineRoute({
    ...resuming,
    path: '/api/conversations/{conversation}/chat/{chat}/stream',
    params: { chat: CHAT },
    id: 'resumeChatById',
    summary: 'The same where `DefaultChatTransport` looks for it; the id of the chat is not used',
    handle({ context, params, caller }, server) {
      parseInput(ChatPath, { chat: params.chat }, 'the path');
      return resume(context, askingOf(caller, params.conversation), server);
    },
  }),
] as const;

export const aiSdk = defineDoor({ name: 'ai-sdk', routes: chatRoutes });
